// gpu-fragmentation: how much less of a host's free GPUs could be used by what is typically asked for, if the request went there. After
// FGD (Weng et al., "Beware of Fragmentation", USENIX ATC 2023), with two terms more: what a GPU shared out in such parts would have left
// over, and GPUs that too few CPUs are left for.

import { gpuClass } from '../../../api/resources/host-rules.ts';
import { capacityOf } from '../../ledger/ledger.ts';
import type { Fleet } from '../fleet.ts';
import type { RoomPlugin } from '../framework.ts';
import { gpuAskOf, type Typical, type TypicalThere } from '../mix.ts';
import type { Slot } from '../slot.ts';

// Found by replays of the openb lists (bench `packing`), with the goal of the most GPU handed out at 130 % of demand.

/** Of what is over once a GPU is shared out evenly, so much counts as lost. */
const remainderLoss = 0.3;
/** GPUs without so much of the CPUs that are typically asked for with them count as lost. */
const cpusNeeded = 0.8;
/** Smaller differences, in thousandths of a GPU, do not count: then the lower name does. */
const step = 10;

export const gpuFragmentation: RoomPlugin = {
  name: 'gpu-fragmentation',
  summary: 'how little of the free GPUs would become useless for what is typically asked for',
  dependsOn: 'room',
  prepare(request, fleet) {
    const gpus = fleet.column(gpuClass);
    if (!gpus) return null;
    const { typical } = fleet.mix;
    const gpu = gpuAskOf(request);
    const cpusAsked = request.assigned['VCPU'] ?? 0;
    const vcpu = fleet.column('VCPU');
    const free = new FreeGpus();
    return {
      score(slot) {
        if ((gpus.capacity[slot] ?? 0) === 0) return 50;
        free.read(fleet, slot, gpu?.models ?? []);
        const there = typical.at(free.traits);
        const cpus = (vcpu?.capacity[slot] ?? 0) - (vcpu?.used[slot] ?? 0);
        const lostNow = lostOf(free, cpus, there, typical);
        if (gpu) free.take(gpu.count, gpu.milli);
        const lostThen = lostOf(free, cpus - cpusAsked, there, typical);
        const gained = (Math.floor((lostNow - lostThen) / step) * step) / 1000;
        return 50 + (50 * gained) / (1 + Math.abs(gained)); // 0..100, finest where differences are small
      },
    };
  },
};

/** What is free on each GPU of one host, in thousandths. Made once for many hosts. */
class FreeGpus {
  readonly milli: number[] = [];
  count = 0;
  total = 0;
  /** Of the first GPU: those of one host are taken to be alike. */
  traits: readonly string[] = [];
  readonly #mayGive: boolean[] = [];

  read(fleet: Fleet, slot: Slot, models: readonly string[]): void {
    this.count = 0;
    this.total = 0;
    for (const { provider, used } of fleet.tree(slot)) {
      const inventory = provider.inventories[gpuClass];
      if (!inventory) continue;
      if (this.count === 0) this.traits = provider.traits;
      const free = Math.max(0, capacityOf(inventory) - (used.get(gpuClass) ?? 0));
      this.milli[this.count] = free;
      this.#mayGive[this.count] = models.length === 0 || models.some((model) => provider.traits.includes(model));
      this.count += 1;
      this.total += free;
    }
  }

  /** As the ledger does it: from those with the least left. */
  take(count: number, milli: number): void {
    for (let taken = 0; taken < count; taken++) {
      let best = -1;
      for (let i = 0; i < this.count; i++) {
        const free = this.milli[i] ?? 0;
        if (!this.#mayGive[i] || free < milli) continue;
        if (best < 0 || free < (this.milli[best] ?? 0)) best = i;
      }
      if (best < 0) return;
      this.#mayGive[best] = false; // another one each time
      this.milli[best] = (this.milli[best] ?? 0) - milli;
      this.total -= milli;
    }
  }
}

/** What of the free GPUs is lost on average to those who may ask next; and what has too few CPUs beside it. */
function lostOf(
  { milli, count, total }: FreeGpus,
  cpus: number,
  { strangers, classes }: TypicalThere,
  { cpusPerMilli }: Typical,
): number {
  if (total === 0) return 0;
  let lost = strangers * total;
  for (const each of classes) {
    let able = 0;
    let lostToThem = 0;
    for (let i = 0; i < count; i++) {
      const free = milli[i] ?? 0;
      if (free < each.milli) lostToThem += free;
      else {
        able += 1;
        lostToThem += remainderLoss * (free % each.milli);
      }
    }
    const served = able < each.count ? 0 : shareServed(each, cpus);
    lost += served * lostToThem + (each.share - served) * total;
  }
  const withoutCpus = cpusPerMilli === 0 ? 0 : Math.max(0, total - cpus / (cpusNeeded * cpusPerMilli));
  return lost + withoutCpus;
}

/** The share of those who find enough CPUs. */
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
