// gpu-fragmentation: how much less of a host's free GPUs typical requests could use if this request were placed there.
// After FGD (Weng et al., "Beware of Fragmentation", USENIX ATC 2023), with two more terms: the remainder of a GPU
// divided into such parts, and GPUs with too few CPUs left beside them. The free GPUs of hosts are cached by the
// picture of typical requests; the cache changes no answer.

import { gpuClass } from '../../../api/resources/host-rules.ts';
import { capacityOf } from '../../ledger/ledger.ts';
import type { Fleet } from '../fleet.ts';
import type { RoomPlugin } from '../framework.ts';
import { gpuAskOf, type Typical, type TypicalThere } from '../packing/mix.ts';
import type { Slot } from '../engine/slot.ts';

// Found by replays of the openb traces (bench `packing`), with the goal of allocating the most GPU at 130 % demand.

/** The share of an evenly divided GPU's remainder that counts as lost. */
const remainderLoss = 0.3;
/** GPUs with less than this share of the typical CPUs beside them count as lost. */
const cpusNeeded = 0.8;
/** Smaller differences, in thousandths of a GPU, are ties, which the lower name wins. */
const step = 10;

export const gpuFragmentation: RoomPlugin = {
  name: 'gpu-fragmentation',
  summary: 'how few free GPUs would become unusable for typical requests',
  dependsOn: 'room',
  prepare(request, fleet) {
    const gpus = fleet.column(gpuClass);
    // A profile with weight 0 does not pay for counting requests.
    if (!gpus || (request.weights['gpu-fragmentation'] ?? 0) === 0) return null;
    const { typical } = fleet.mix;
    const rooms = roomsOf(typical);
    const gpu = gpuAskOf(request);
    const cpusAsked = request.assigned['VCPU'] ?? 0;
    const then = new FreeGpus();
    return {
      score(slot) {
        if (gpus.capacity(slot) === 0) return 50;
        const room = currentRoom(rooms, slot, fleet, typical);
        then.copy(room.free);
        if (gpu) then.take(gpu.count, gpu.milli);
        const lostThen = lostOf(then, room.cpus - cpusAsked, room.there, typical);
        const gained = (Math.floor((room.lost - lostThen) / step) * step) / 1000;
        return 50 + (50 * gained) / (1 + Math.abs(gained)); // 0 to 100, finest where differences are small
      },
    };
  },
};

/** What one host has, which is the same for all requests until the host changes. */
interface Room {
  lastChange: number;
  readonly free: FreeGpus;
  cpus: number;
  there: TypicalThere;
  lost: number;
}

const roomsByPicture = new WeakMap<Typical, Room[]>();

function roomsOf(typical: Typical): Room[] {
  let rooms = roomsByPicture.get(typical);
  if (!rooms) roomsByPicture.set(typical, (rooms = []));
  return rooms;
}

function currentRoom(rooms: Room[], slot: Slot, fleet: Fleet, typical: Typical): Room {
  const lastChange = fleet.log.lastChange(slot);
  const room = (rooms[slot] ??= { lastChange: -1, free: new FreeGpus(), cpus: 0, there: typical.at([]), lost: 0 });
  if (room.lastChange === lastChange) return room;
  const traits = room.free.read(fleet, slot);
  const vcpu = fleet.column('VCPU');
  room.lastChange = lastChange;
  room.cpus = vcpu ? vcpu.capacity(slot) - vcpu.used(slot) : 0;
  room.there = typical.at(traits);
  room.lost = lostOf(room.free, room.cpus, room.there, typical);
  return room;
}

/**
 * Free GPUs of one host in thousandths: the amounts, and the number of GPUs with each. They are assumed to be of one
 * model.
 */
class FreeGpus {
  readonly milli: number[] = [];
  readonly counts: number[] = [];
  length = 0;
  total = 0;

  /** Returns the traits of the GPUs. */
  read(fleet: Fleet, slot: Slot): readonly string[] {
    this.length = 0;
    this.total = 0;
    let traits: readonly string[] | undefined;
    for (const { provider, used } of fleet.tree(slot)) {
      const inventory = provider.inventories[gpuClass];
      if (!inventory) continue;
      traits ??= provider.traits;
      this.#add(Math.max(0, capacityOf(inventory) - (used.get(gpuClass) ?? 0)), 1);
    }
    return traits ?? [];
  }

  copy({ milli, counts, length, total }: FreeGpus): void {
    for (let i = 0; i < length; i++) {
      this.milli[i] = milli[i] ?? 0;
      this.counts[i] = counts[i] ?? 0;
    }
    this.length = length;
    this.total = total;
  }

  /** Like the ledger: from the GPUs with the least left. */
  take(count: number, milli: number): void {
    for (let wanted = count; wanted > 0; ) {
      let best = -1;
      for (let i = 0; i < this.length; i++) {
        const free = this.milli[i] ?? 0;
        if (free >= milli && (this.counts[i] ?? 0) > 0 && (best < 0 || free < (this.milli[best] ?? 0))) best = i;
      }
      if (best < 0) return;
      const free = this.milli[best] ?? 0;
      const taken = Math.min(wanted, this.counts[best] ?? 0);
      this.counts[best] = (this.counts[best] ?? 0) - taken;
      this.total -= taken * free;
      this.#add(free - milli, taken);
      wanted -= taken;
    }
  }

  #add(milli: number, count: number): void {
    if (milli === 0) return;
    this.total += count * milli;
    for (let i = 0; i < this.length; i++) {
      if (this.milli[i] !== milli) continue;
      this.counts[i] = (this.counts[i] ?? 0) + count;
      return;
    }
    this.milli[this.length] = milli;
    this.counts[this.length] = count;
    this.length += 1;
  }
}

/** The average share of free GPUs that the next requests cannot use, plus what has too few CPUs beside it. */
function lostOf(
  { milli, counts, length, total }: FreeGpus,
  cpus: number,
  { strangers, classes }: TypicalThere,
  { cpusPerMilli }: Typical,
): number {
  if (total === 0) return 0;
  let lost = strangers * total;
  for (const each of classes) {
    const served = shareServed(each, cpus);
    let able = 0;
    let lostToThem = 0;
    for (let i = 0; i < length; i++) {
      const free = milli[i] ?? 0;
      const count = counts[i] ?? 0;
      if (free < each.milli) lostToThem += count * free;
      else {
        able += count;
        lostToThem += count * remainderLoss * (free % each.milli);
      }
    }
    lost += able < each.count ? each.share * total : served * lostToThem + (each.share - served) * total;
  }
  const withoutCpus = cpusPerMilli === 0 ? 0 : Math.max(0, total - cpus / (cpusNeeded * cpusPerMilli));
  return lost + withoutCpus;
}

/** The share of requests that find enough CPUs. */
function shareServed({ cpus: asked, shareUpTo, share }: TypicalThere['classes'][number], cpus: number): number {
  let low = 0;
  let high = asked.length;
  if (cpus >= (asked[high - 1] ?? 0)) return share;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((asked[middle] ?? 0) <= cpus) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? 0 : (shareUpTo[low - 1] ?? 0);
}
