// Consolidate: which instances to move so that whole hosts become empty, within a budget of moves. Pure; it only plans,
// in one pass over the fleet. A move pays while the room it frees is not needed soon: the time since a host was last
// opened for such instances estimates that, and the remaining budget sets the price of a move.

/** What the planner needs to know of an instance. */
export interface Movable {
  /** Index in `shapes`; below 0 when the instance must stay. */
  readonly shape: number;
  /** Its group, of which no host may have more than `maxPerHost`. */
  readonly group?: number;
  readonly maxPerHost?: number;
}

export interface PackedHost<I extends Movable> {
  /** By class, as in `shapes`. */
  readonly free: readonly number[];
  readonly capacity: readonly number[];
  readonly instances: readonly I[];
}

export interface PackedFleet<I extends Movable> {
  /** Sorted by name. */
  readonly hosts: readonly PackedHost<I>[];
  /** The amount of each class. */
  readonly shapes: readonly (readonly number[])[];
  /** By shape: when a request of it, or of a shape no larger in any class, last went to an empty host. */
  readonly lastOpenS: readonly number[];
  readonly nowS: number;
  /** Average lifetime of ended instances. */
  readonly lifetimeS: number;
  /** Number of moves allowed now. */
  readonly budget: number;
  /**
   * With this many moves left, a move costs half of what the last one does: about the number of arrivals during one
   * lifetime. At least 1.
   */
  readonly budgetScale: number;
}

export interface Move<I extends Movable> {
  readonly instance: I;
  /** Index in `hosts`. */
  readonly from: number;
  readonly to: number;
}

/** A host with more instances is left alone. */
const instancesMax = 60;
/** Limit on hosts emptied in one plan. */
const emptiedMax = 50;

/** In this order each move finds room on its target, and the source hosts end up empty. */
export function planMoves<I extends Movable>(fleet: PackedFleet<I>): Move<I>[] {
  const { nowS, lastOpenS, lifetimeS, budget, budgetScale, hosts } = fleet;
  if (budget < 1) return [];
  let opened = Number.POSITIVE_INFINITY;
  for (const each of lastOpenS) opened = Math.min(opened, each);
  const price = (left: number): number => lifetimeS / (1 + left / budgetScale);
  if (nowS - opened < price(budget)) return [];
  const world = new World(fleet);
  const moves: Move<I>[] = [];
  const priceNow = price(budget);
  for (let emptied = 0; emptied < emptiedMax; emptied++) {
    const left = budget - moves.length;
    if (left < 1 || !world.hasRoomForOneLess()) break;
    const plan = firstThatEmpties(candidatesOf(world, hosts.length, Math.min(left, instancesMax)), world);
    if (!plan) break;
    moves.push(...plan);
  }
  return moves;

  function candidatesOf(current: World<I>, count: number, most: number): number[] {
    const found: number[] = [];
    for (let host = count - 1; host >= 0; host--) {
      const instances = current.instancesOn(host);
      if (instances.length > 0 && instances.length <= most && worthOf(instances) >= priceNow) found.push(host);
    }
    // The sort is stable: of equal hosts the highest name comes first, because low names fill up first.
    return found.sort((a, b) => current.instancesOn(a).length - current.instancesOn(b).length);
  }

  /** Seconds of an empty host gained per move; below 0 when an instance must stay. */
  function worthOf(instances: readonly I[]): number {
    let last = Number.NEGATIVE_INFINITY;
    for (const { shape } of instances) {
      if (shape < 0) return -1;
      last = Math.max(last, lastOpenS[shape] ?? 0);
    }
    return (nowS - last) / instances.length;
  }
}

function firstThatEmpties<I extends Movable>(candidates: readonly number[], world: World<I>): Move<I>[] | null {
  for (const host of candidates) {
    if (world.instancesOn(host).some(({ shape }) => !world.fitsElsewhere(shape, host))) continue;
    const plan = world.empty(host);
    if (plan) return plan;
  }
  return null;
}

/** The fleet after the planned moves. */
class World<I extends Movable> {
  readonly #classes: number;
  readonly #shapes: PackedFleet<I>['shapes'];
  readonly #capacity: Float64Array;
  readonly #free: Float64Array;
  readonly #lists: (readonly I[])[];
  /** Indexes of the hosts with instances. */
  #inUse: number[];
  /** By shape: up to two hosts in use where it fits. */
  readonly #twoThatFit = new Map<number, readonly number[]>();
  /** By shape: the largest share that it takes of any class of a host. */
  readonly #sizes: readonly number[];
  readonly #hostsNeeded: number;

  constructor({ hosts, shapes }: PackedFleet<I>) {
    const classes = hosts[0]?.capacity.length ?? 0;
    this.#classes = classes;
    this.#shapes = shapes;
    this.#capacity = new Float64Array(hosts.length * classes);
    this.#free = new Float64Array(hosts.length * classes);
    this.#lists = hosts.map(({ instances }) => instances);
    this.#inUse = [];
    for (const [place, { capacity, free, instances }] of hosts.entries()) {
      if (instances.length > 0) this.#inUse.push(place);
      for (let i = 0; i < classes; i++) {
        this.#capacity[place * classes + i] = capacity[i] ?? 0;
        this.#free[place * classes + i] = free[i] ?? 0;
      }
    }
    const [first] = hosts;
    this.#sizes = shapes.map((amounts) =>
      Math.max(0, ...amounts.map((amount, i) => amount / Math.max(1, first?.capacity[i] ?? 1))),
    );
    this.#hostsNeeded = this.#countNeeded();
  }

  instancesOn(host: number): readonly I[] {
    return this.#lists[host] ?? [];
  }

  /** Whether one host fewer could possibly hold everything. */
  hasRoomForOneLess(): boolean {
    return this.#inUse.length >= 2 && this.#inUse.length - this.#hostsNeeded >= 1;
  }

  /** How many average hosts in use have the capacity for the scarcest class. */
  #countNeeded(): number {
    let most = 0;
    for (let i = 0; i < this.#classes; i++) {
      let held = 0;
      let all = 0;
      for (const host of this.#inUse) {
        const at = host * this.#classes + i;
        all += this.#capacity[at] ?? 0;
        held += (this.#capacity[at] ?? 0) - (this.#free[at] ?? 0);
      }
      if (all > 0) most = Math.max(most, (held / all) * this.#inUse.length);
    }
    return most;
  }

  fitsElsewhere(shape: number, host: number): boolean {
    let two = this.#twoThatFit.get(shape);
    if (!two) {
      const found: number[] = [];
      for (const each of this.#inUse) if (found.length < 2 && this.#leftOn(each, shape) >= 0) found.push(each);
      this.#twoThatFit.set(shape, (two = found));
    }
    return two.length === 2 || (two.length === 1 && two[0] !== host);
  }

  /**
   * Moves all instances of the host elsewhere, the largest first, each to where the least is left; null, with nothing
   * changed, when one of them must stay.
   */
  empty(host: number): Move<I>[] | null {
    const moves: Move<I>[] = [];
    const sizeOf = ({ shape }: I): number => this.#sizes[shape] ?? 0;
    for (const instance of this.instancesOn(host).toSorted((a, b) => sizeOf(b) - sizeOf(a))) {
      const to = this.#tightestFor(instance, host, moves);
      if (to < 0) {
        for (const move of moves) this.#take(move.to, move.instance.shape, -1);
        return null;
      }
      this.#take(to, instance.shape, 1);
      moves.push({ instance, from: host, to });
    }
    for (const { instance, to } of moves) {
      this.#take(host, instance.shape, -1);
      this.#lists[to] = [...this.instancesOn(to), instance];
    }
    this.#lists[host] = [];
    this.#inUse = this.#inUse.filter((each) => each !== host);
    this.#twoThatFit.clear();
    return moves;
  }

  #tightestFor(instance: I, from: number, planned: readonly Move<I>[]): number {
    let best = -1;
    let leftThere = Number.POSITIVE_INFINITY;
    for (const host of this.#inUse) {
      if (host === from) continue;
      const left = this.#leftOn(host, instance.shape);
      if (left < 0 || left >= leftThere || !this.#mayJoin(instance, host, planned)) continue;
      best = host;
      leftThere = left;
    }
    return best;
  }

  #mayJoin({ group, maxPerHost }: I, host: number, planned: readonly Move<I>[]): boolean {
    if (group === undefined || maxPerHost === undefined) return true;
    let there = 0;
    for (const other of this.instancesOn(host)) if (other.group === group) there += 1;
    for (const { instance, to } of planned) if (to === host && instance.group === group) there += 1;
    return there < maxPerHost;
  }

  /** The share that would be left of the host's scarcest class; below 0 when it does not fit. */
  #leftOn(host: number, shape: number): number {
    const amounts = this.#shapes[shape] ?? [];
    const start = host * this.#classes;
    let least = 1;
    for (let i = 0; i < this.#classes; i++) {
      const left = (this.#free[start + i] ?? 0) - (amounts[i] ?? 0);
      const capacity = this.#capacity[start + i] ?? 0;
      if (left < 0) return -1;
      if (capacity > 0 && left / capacity < least) least = left / capacity;
    }
    return least;
  }

  #take(host: number, shape: number, times: 1 | -1): void {
    const amounts = this.#shapes[shape] ?? [];
    for (let i = 0; i < this.#classes; i++) {
      const at = host * this.#classes + i;
      this.#free[at] = (this.#free[at] ?? 0) - times * (amounts[i] ?? 0);
    }
  }
}
