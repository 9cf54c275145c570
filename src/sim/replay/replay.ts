// Replay: a recorded trace through the production scheduler, online: nothing is known of an instance before it arrives, nor of when it will
// leave. At each second instances leave first, then those that wait are tried again, then new ones arrive, in the order of the trace;
// then, with a budget of moves, hosts are emptied. What comes out is what the fleet would have been like.

import { assert } from '../../base/assert.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { assign } from '../../core/ledger/tree.ts';
import { type Movable, planMoves } from '../../core/scheduler/packing/consolidate.ts';
import type { Engine } from '../../core/scheduler/engine/engine.ts';
import type { Fleet } from '../../core/scheduler/fleet.ts';
import type { ProfileName } from '../../core/scheduler/profiles.ts';
import { engineOf } from '../../core/scheduler/schedule.ts';
import type { Slot } from '../../core/scheduler/engine/slot.ts';
import { Departures } from './departures.ts';
import { HostsNeeded } from './hosts-needed.ts';
import { type Held, ReplayCluster } from './replay-cluster.ts';
import { hostName, type ReplayFleet } from './replay-fleet.ts';
import { strandedOf, typicalOf } from './stranded.ts';
import { type Asked, capacityOf, recordOf, TraceRequests } from './trace-requests.ts';
import type { Trace } from './trace.ts';
import { WaitingLine } from './waiting-line.ts';

export interface ReplayOptions {
  readonly trace: Trace;
  readonly fleet: ReplayFleet;
  readonly profile: ProfileName;
  /** Moves for each instance that arrives: 0.02 is one for 50; 0: none. */
  readonly movesPerArrival: number;
  /** Milliseconds since some start: for the rate of decisions. */
  readonly clockMs: () => number;
}

/** Of one stretch of time: averages. */
export interface Stretch {
  readonly atS: number;
  readonly hostsInUse: number;
  /** How many hosts were needed at least; where hosts differ, how many average ones would hold it. */
  readonly hostsNeeded: number;
}

export interface Replayed {
  readonly profile: ProfileName;
  /** Rows that arrived, but for those that no host is large enough for and those that leave in the second they come. */
  readonly arrivals: number;
  readonly impossible: number;
  readonly momentary: number;
  readonly placed: number;
  /** At the end. */
  readonly waiting: number;
  /** Of those placed, in seconds; most wait 0. */
  readonly waits: { readonly delayed: number; readonly p50S: number; readonly p99S: number; readonly maxS: number };
  readonly spanS: number;
  readonly hosts: number;
  readonly hostsPeak: number;
  readonly hostHours: number;
  /** Host-hours that no packing can do without; null where hosts differ. */
  readonly boundHostHours: number | null;
  /** hostHours over boundHostHours. */
  readonly ratio: number | null;
  /** Percent of what hosts in use have, free where the request most often made does not fit; averages. GPUs by the one most often made for GPUs. */
  readonly stranded: {
    readonly cpuPercent: number;
    readonly memoryPercent: number;
    readonly gpuPercent: number | null;
  };
  /** Percent of the fleet's GPUs that are handed out at the end; null where there are none. */
  readonly gpuAllocatedPercent: number | null;
  readonly moves: { readonly made: number; readonly budget: number; readonly hostsEmptied: number };
  readonly decisions: number;
  readonly decisionsPerS: number;
  readonly stretches: readonly Stretch[];
}

/** The plot's width in points. */
const stretchesCount = 400;
const strandedLooks = 200;
const progressEvery = 2048;

export function replay(options: ReplayOptions): Replayed {
  const steps = replaySteps(options);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** The same in pieces; each `yield` tells what share of the trace is done. */
export function replaySteps(options: ReplayOptions): Generator<number, Replayed> {
  return new Replay(options).run();
}

interface MovableRow extends Movable {
  readonly row: number;
}

interface PackedSlot {
  readonly free: number[];
  readonly capacity: readonly number[];
  readonly instances: MovableRow[];
}

class Replay {
  readonly #options: ReplayOptions;
  readonly #cluster = new ReplayCluster();
  readonly #engine: Engine;
  readonly #hosts: Fleet;
  readonly #requests: TraceRequests;
  readonly #needed: HostsNeeded | null;
  readonly #capacitySum: number[] = [0, 0, 0, 0, 0];
  readonly #demand: number[] = [0, 0, 0, 0, 0];

  // By row.
  readonly #slotOf: Int32Array;
  readonly #arrivedS: Int32Array;
  readonly #askedOf: Asked[] = [];
  readonly #heldBy: (Held | undefined)[] = [];
  readonly #records = new Map<number, Instance>();
  readonly #recordsForAll: boolean;
  readonly #departures = new Departures();
  readonly #line = new WaitingLine();
  readonly #delays: number[] = [];

  // For moves.
  readonly #packed: PackedSlot[] = [];
  readonly #lastOpenS: number[] = [];
  readonly #seat: Int32Array;

  #nowS = 0;
  #endS = 0;
  #inUse = 0;
  #hostsPeak = 0;
  #hostSeconds = 0;
  #neededSeconds = 0;
  #neededNow = 0;
  #arrivals = 0;
  #impossible = 0;
  #momentary = 0;
  #placed = 0;
  #departed = 0;
  #departedLifeS = 0;
  #moves = 0;
  #emptied = 0;
  #decisions = 0;
  #decisionMs = 0;
  readonly #stretchS: number;
  readonly #stretchSums: { hosts: number; needed: number; seconds: number }[] = [];
  readonly #strandedSums = { cpu: 0, memory: 0, gpu: 0, looks: 0 };
  #nextLookS = 0;

  constructor(options: ReplayOptions) {
    const { trace, fleet, profile } = options;
    this.#options = options;
    for (const { name, shape } of fleet.hosts) this.#cluster.addHost(name, shape);
    this.#engine = engineOf(this.#cluster);
    this.#hosts = this.#engine.fleet;
    this.#requests = new TraceRequests(trace, fleet, this.#cluster, profile);
    this.#needed = fleet.uniform ? neededOf(trace, capacityOf(fleet.uniform)) : null;
    for (const { shape } of fleet.hosts) this.#countHost(capacityOf(shape));
    this.#slotOf = new Int32Array(trace.rows).fill(-1);
    this.#arrivedS = trace.arriveS;
    this.#seat = new Int32Array(options.movesPerArrival > 0 ? trace.rows : 0);
    this.#recordsForAll = trace.gpus.some((gpus) => gpus > 0);
    for (let row = 0; row < trace.rows; row++)
      this.#endS = Math.max(this.#endS, trace.arriveS[row] ?? 0, trace.departS[row] ?? 0);
    this.#stretchS = Math.max(1, Math.ceil((this.#endS + 1) / stretchesCount));
  }

  *run(): Generator<number, Replayed> {
    const { trace, movesPerArrival } = this.#options;
    let row = 0;
    while (row < trace.rows || this.#departures.size > 0) {
      const arriveS = row < trace.rows ? (trace.arriveS[row] ?? 0) : Number.POSITIVE_INFINITY;
      this.#goTo(Math.min(arriveS, this.#departures.nextS));
      let left = false;
      for (; this.#departures.nextS <= this.#nowS; left = true) this.#depart(this.#departures.pop());
      if (left && this.#line.size > 0) this.#tryWaiting();
      for (; row < trace.rows && (trace.arriveS[row] ?? 0) <= this.#nowS; row++) {
        this.#arrive(row);
        if (row % progressEvery === 0) yield row / trace.rows;
      }
      // What moves have made free may be what someone waits for.
      if (movesPerArrival > 0 && this.#move() > 0 && this.#line.size > 0) this.#tryWaiting();
    }
    this.#goTo(Math.max(this.#endS, this.#nowS));
    return this.#result();
  }

  #goTo(atS: number): void {
    const seconds = atS - this.#nowS;
    if (seconds <= 0) return;
    this.#neededNow = this.#countNeeded();
    this.#hostsPeak = Math.max(this.#hostsPeak, this.#inUse);
    this.#hostSeconds += seconds * this.#inUse;
    this.#neededSeconds += seconds * this.#neededNow;
    this.#addToStretches(this.#nowS, atS);
    if (this.#nowS >= this.#nextLookS) this.#lookForStranded();
    this.#nowS = atS;
  }

  #countNeeded(): number {
    if (this.#needed) return this.#needed.count();
    let share = 0;
    for (const [i, all] of this.#capacitySum.entries())
      if (all > 0) share = Math.max(share, (this.#demand[i] ?? 0) / all);
    return share * this.#hosts.count;
  }

  #addToStretches(fromS: number, toS: number): void {
    for (let at = fromS; at < toS; ) {
      const number = Math.floor(at / this.#stretchS);
      const end = Math.min(toS, (number + 1) * this.#stretchS);
      const sums = (this.#stretchSums[number] ??= { hosts: 0, needed: 0, seconds: 0 });
      sums.hosts += (end - at) * this.#inUse;
      sums.needed += (end - at) * this.#neededNow;
      sums.seconds += end - at;
      at = end;
    }
  }

  #lookForStranded(): void {
    this.#nextLookS = this.#nowS + this.#endS / strandedLooks;
    const typical = typicalOf(this.#options.trace);
    const { cpu, memory, gpu } = strandedOf(this.#engine, {
      plain: typical.plain < 0 ? null : this.#requests.of(typical.plain).request,
      gpu: typical.gpu < 0 ? null : this.#requests.of(typical.gpu).request,
    });
    this.#strandedSums.cpu += cpu;
    this.#strandedSums.memory += memory;
    this.#strandedSums.gpu += gpu;
    this.#strandedSums.looks += 1;
  }

  #arrive(row: number): void {
    const { trace } = this.#options;
    if (trace.departS[row] === trace.arriveS[row]) {
      this.#momentary += 1;
      return;
    }
    const asked = this.#requests.of(row);
    if (!asked.possible) {
      this.#impossible += 1;
      return;
    }
    this.#arrivals += 1;
    this.#askedOf[row] = asked;
    if (this.#recordsForAll || asked.maxPerHost > 0) {
      const record = recordOf(`r${row}`, asked);
      this.#records.set(row, record);
      this.#cluster.setInstance(record, undefined);
    }
    // Those who ask alike are served in the order they came.
    if (this.#line.has(asked) || !this.#place(row, asked)) this.#line.push(asked, row);
  }

  #tryWaiting(): void {
    const refused = new Set<Asked>();
    for (;;) {
      const next = this.#line.first(refused);
      if (!next) return;
      if (this.#place(next.row, next.asked)) this.#line.shift(next.asked);
      else refused.add(next.asked);
    }
  }

  #place(row: number, asked: Asked): boolean {
    const { growsBy } = this.#options.fleet;
    const start = this.#options.clockMs();
    let choice = this.#engine.choose(asked.request);
    this.#decisions += 1;
    if (!choice && growsBy) {
      this.#cluster.addHost(hostName(this.#hosts.length), growsBy);
      this.#countHost(capacityOf(growsBy));
      choice = this.#engine.choose(asked.request);
    }
    if (choice) this.#bind(row, asked, choice.slot);
    this.#decisionMs += this.#options.clockMs() - start;
    if (!choice) return false;
    this.#needed?.add(asked.amounts, 1);
    if (asked.maxPerHost > 0) this.#needed?.addToGroup(asked.group, asked.maxPerHost, 1);
    for (const [i, amount] of asked.amounts.entries()) this.#demand[i] = (this.#demand[i] ?? 0) + amount;
    this.#placed += 1;
    const waitedS = this.#nowS - (this.#arrivedS[row] ?? 0);
    if (waitedS > 0) this.#delays.push(waitedS);
    const departS = this.#options.trace.departS[row] ?? -1;
    if (departS >= 0) this.#departures.push(departS + waitedS, row);
    return true;
  }

  #bind(row: number, asked: Asked, slot: Slot): void {
    const assignment = assign(this.#hosts.tree(slot), asked.request);
    assert(assignment.fits, `${this.#hosts.names[slot]} was chosen and does not fit`);
    const opens = this.#hosts.guests[slot] === 0;
    this.#settle(row, asked, { slot, held: assignment.held });
    if (opens) this.#noteOpened(asked.shape);
  }

  #settle(row: number, asked: Asked, { slot, held }: { readonly slot: Slot; readonly held: Held }): void {
    if (this.#hosts.guests[slot] === 0) this.#inUse += 1;
    const host = this.#hosts.names[slot] ?? '';
    this.#cluster.hold(host, held);
    this.#slotOf[row] = slot;
    this.#heldBy[row] = held;
    const record = asked.maxPerHost > 0 ? this.#records.get(row) : undefined;
    if (record) this.#cluster.setInstance(record, host);
    if (this.#options.movesPerArrival > 0) this.#sit(row, asked, slot);
  }

  #unsettle(row: number, asked: Asked): void {
    const slot = this.#slotOf[row] ?? -1;
    this.#cluster.release(this.#hosts.names[slot] ?? '', this.#heldBy[row] ?? {});
    if (this.#hosts.guests[slot] === 0) this.#inUse -= 1;
    this.#slotOf[row] = -1;
    this.#heldBy[row] = undefined;
    if (this.#options.movesPerArrival > 0) this.#rise(row, asked, slot);
  }

  #depart(row: number): void {
    const asked = this.#askedOf[row];
    assert(asked, `row ${row} leaves and never came`);
    this.#unsettle(row, asked);
    const record = this.#records.get(row);
    if (record) this.#cluster.removeInstance(record);
    this.#records.delete(row);
    this.#needed?.add(asked.amounts, -1);
    if (asked.maxPerHost > 0) this.#needed?.addToGroup(asked.group, asked.maxPerHost, -1);
    for (const [i, amount] of asked.amounts.entries()) this.#demand[i] = (this.#demand[i] ?? 0) - amount;
    this.#departed += 1;
    const { trace } = this.#options;
    this.#departedLifeS += (trace.departS[row] ?? 0) - (trace.arriveS[row] ?? 0);
  }

  #countHost(capacity: readonly number[]): void {
    for (const [i, each] of capacity.entries()) this.#capacitySum[i] = (this.#capacitySum[i] ?? 0) + each;
    if (this.#options.movesPerArrival > 0) this.#packed.push({ free: [...capacity], capacity, instances: [] });
  }

  // Moves. Slots are in the order of names, and so is `#packed`.

  #sit(row: number, asked: Asked, slot: Slot): void {
    const packed = this.#packed[slot];
    if (!packed) return;
    const { shape, shared, group, maxPerHost } = asked;
    // Where a share of a GPU would find its place is not told by sums.
    const movable = { row, shape: shared ? -1 : shape, ...(maxPerHost > 0 ? { group, maxPerHost } : {}) };
    this.#seat[row] = packed.instances.push(movable) - 1;
    for (const [i, amount] of asked.amounts.entries()) packed.free[i] = (packed.free[i] ?? 0) - amount;
  }

  #rise(row: number, asked: Asked, slot: Slot): void {
    const packed = this.#packed[slot];
    const last = packed?.instances.pop();
    if (!packed || !last) return;
    const seat = this.#seat[row] ?? 0;
    if (last.row !== row) {
      packed.instances[seat] = last;
      this.#seat[last.row] = seat;
    }
    for (const [i, amount] of asked.amounts.entries()) packed.free[i] = (packed.free[i] ?? 0) + amount;
  }

  /** A host had to be opened for such an instance: so it would have been for one that asks for more. */
  #noteOpened(shape: number): void {
    if (this.#options.movesPerArrival === 0) return;
    const { shapes } = this.#requests;
    const opened = shapes[shape] ?? [];
    for (const [other, amounts] of shapes.entries())
      if (amounts.every((amount, i) => amount >= (opened[i] ?? 0))) this.#lastOpenS[other] = this.#nowS;
  }

  /** Answers how many hosts it emptied. */
  #move(): number {
    const { movesPerArrival } = this.#options;
    const budget = this.#arrivals * movesPerArrival - this.#moves;
    if (budget < 1) return 0;
    const { shapes } = this.#requests;
    while (this.#lastOpenS.length < shapes.length) this.#lastOpenS.push(this.#openedFor(this.#lastOpenS.length));
    const moves = planMoves<MovableRow>({
      hosts: this.#packed,
      shapes,
      lastOpenS: this.#lastOpenS,
      nowS: this.#nowS,
      lifetimeS: this.#departed === 0 ? Number.POSITIVE_INFINITY : this.#departedLifeS / this.#departed,
      budget,
      budgetScale: Math.max(1, (this.#departedLifeS / Math.max(1, this.#nowS)) * movesPerArrival),
    });
    const before = this.#inUse;
    for (const { instance, to } of moves) {
      const asked = this.#askedOf[instance.row];
      // GPUs may be there in sum, and not as they are asked for.
      if (!asked) continue;
      const assignment = assign(this.#hosts.tree(to), asked.request);
      if (!assignment.fits) continue;
      this.#unsettle(instance.row, asked);
      this.#settle(instance.row, asked, { slot: to, held: assignment.held });
      this.#moves += 1;
    }
    const emptied = before - this.#inUse;
    this.#emptied += emptied;
    return emptied;
  }

  /** When a host was last opened for a shape, for one that was never asked for before. */
  #openedFor(shape: number): number {
    const { shapes } = this.#requests;
    const amounts = shapes[shape] ?? [];
    let lastS = 0;
    for (const [other, openS] of this.#lastOpenS.entries())
      if (shapes[other]?.every((amount, i) => amount <= (amounts[i] ?? 0))) lastS = Math.max(lastS, openS);
    return lastS;
  }

  #result(): Replayed {
    const { profile, movesPerArrival } = this.#options;
    const { cpu, memory, gpu, looks } = this.#strandedSums;
    const percent = (sum: number): number => (looks === 0 ? 0 : (100 * sum) / looks);
    const gpus = this.#capacitySum[4] ?? 0;
    return {
      profile,
      arrivals: this.#arrivals,
      impossible: this.#impossible,
      momentary: this.#momentary,
      placed: this.#placed,
      waiting: this.#line.size,
      waits: waitsOf(this.#delays, this.#placed),
      spanS: this.#nowS,
      hosts: this.#hosts.count,
      hostsPeak: Math.max(this.#hostsPeak, this.#inUse),
      hostHours: this.#hostSeconds / 3600,
      boundHostHours: this.#needed ? this.#neededSeconds / 3600 : null,
      ratio: this.#needed && this.#neededSeconds > 0 ? this.#hostSeconds / this.#neededSeconds : null,
      stranded: {
        cpuPercent: percent(cpu),
        memoryPercent: percent(memory),
        gpuPercent: gpus === 0 ? null : percent(gpu),
      },
      gpuAllocatedPercent: gpus === 0 ? null : (100 * (this.#demand[4] ?? 0)) / gpus,
      moves: { made: this.#moves, budget: Math.floor(this.#arrivals * movesPerArrival), hostsEmptied: this.#emptied },
      decisions: this.#decisions,
      decisionsPerS: this.#decisionMs === 0 ? 0 : (1000 * this.#decisions) / this.#decisionMs,
      stretches: this.#stretchSums.flatMap((sums, number) =>
        sums.seconds === 0
          ? []
          : [
              {
                atS: number * this.#stretchS,
                hostsInUse: sums.hosts / sums.seconds,
                hostsNeeded: sums.needed / sums.seconds,
              },
            ],
      ),
    };
  }
}

function neededOf(trace: Trace, capacity: readonly number[]): HostsNeeded {
  const gpus = new Set<number>();
  for (let row = 0; row < trace.rows; row++) {
    const count = trace.gpus[row] ?? 0;
    const share = count === 1 ? (trace.gpuMilli[row] ?? 0) : 0;
    gpus.add(share > 0 && share < 1000 ? share : 1000 * count);
  }
  return new HostsNeeded(capacity, [trace.cpuMilli, trace.memoryMiB, trace.diskMiB, trace.networkPercent, gpus]);
}

function waitsOf(delays: readonly number[], placed: number): Replayed['waits'] {
  const sorted = delays.toSorted((a, b) => a - b);
  // All the others waited for nothing.
  const at = (share: number): number => sorted[Math.ceil(share * placed) - 1 - (placed - sorted.length)] ?? 0;
  return { delayed: sorted.length, p50S: at(0.5), p99S: at(0.99), maxS: sorted.at(-1) ?? 0 };
}
