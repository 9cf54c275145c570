// fit: the ledger has room for every resource class and every device that was asked for.

import { gpuClass } from '../../../api/resources/host-rules.ts';
import type { Shortfall } from '../../ledger/ledger.ts';
import { assign, compete, countTakers, type Portion } from '../../ledger/tree.ts';
import { type Refusal, refuse, type RoomPlugin } from '../framework.ts';

export const fit: RoomPlugin = {
  name: 'fit',
  summary: 'the host has enough of everything free',
  dependsOn: 'room',
  prepare(request, fleet) {
    // What columns tell: the most that one claim can get, and what is free in all. Who gives what of several providers is asked of the
    // ledger only where that is enough.
    const asked = Object.entries(request.amounts).flatMap(([resourceClass, amount]) =>
      amount > 0
        ? [{ reason: insufficient(resourceClass), column: fleet.column(resourceClass), amount, inAll: amount }]
        : [],
    );
    for (const { amounts, count } of request.portions) {
      for (const [resourceClass, each] of Object.entries(amounts))
        asked.push({
          reason: insufficient(resourceClass),
          column: fleet.column(resourceClass),
          amount: each,
          inAll: each * count,
        });
    }
    const plain = request.portions.length === 0;
    const apart = !compete(request);
    const shortfallsOf = (slot: number): readonly Shortfall[] => {
      const assignment = assign(fleet.tree(slot), request);
      return assignment.fits ? [] : assignment.shortfalls;
    };
    const explained = (slot: number): Refusal =>
      fleet.tree(slot).length === 0
        ? refuse('NoInventory', 'its agent has never told what it has')
        : describeAll(shortfallsOf(slot));
    /** Less than asked is free in all: the code is known at once, the sentence is made when someone reads it. */
    const tooLittle = (slot: number, reason: string): Refusal => refuse(reason, () => describeFits(shortfallsOf(slot)));
    return {
      filter(slot) {
        for (const { reason, column, amount, inAll } of asked) {
          const enough = column !== undefined && amount <= (column.most[slot] ?? 0);
          if (enough && inAll === amount) continue;
          const free = column ? (column.capacity[slot] ?? 0) - (column.used[slot] ?? 0) : 0;
          if (inAll > free) return fleet.tree(slot).length === 0 ? explained(slot) : tooLittle(slot, reason);
          if (!enough) return explained(slot);
        }
        if (asked.length === 0 && fleet.tree(slot).length === 0) return explained(slot);
        if (fleet.stepped[slot] || !apart) return assign(fleet.tree(slot), request).fits ? null : explained(slot);
        if (plain) return null;
        for (const portion of request.portions) {
          if (countTakers(fleet.tree(slot), portion) < portion.count) return tooLittle(slot, portionReason(portion));
        }
        return null;
      },
    };
  },
};

function portionReason({ amounts }: Portion): string {
  return insufficient(Object.keys(amounts)[0] ?? '');
}

interface ClassWords {
  readonly reason: string;
  readonly noun: string;
  readonly unit: string;
}

const words: Readonly<Record<string, ClassWords>> = {
  VCPU: { reason: 'Cpu', noun: 'CPUs', unit: '' },
  MEMORY_MB: { reason: 'Memory', noun: 'memory', unit: ' MiB' },
  DISK_GB: { reason: 'Disk', noun: 'disk', unit: ' GiB' },
  [gpuClass]: { reason: 'Gpu', noun: 'GPU', unit: ' thousandths' },
};

function insufficient(resourceClass: string): string {
  return `Insufficient${wordsOf(resourceClass).reason}`;
}

function wordsOf(resourceClass: string): ClassWords {
  return words[resourceClass] ?? { reason: resourceClass, noun: resourceClass, unit: '' };
}

/** The first one is counted; people are told of all, so that they do not mend one after the other. */
function describeAll(all: readonly Shortfall[]): Refusal {
  const [first] = all;
  return refuse(first ? describeFit(first).reason : 'Insufficient', () => describeFits(all));
}

/** Everything that is too little, in one sentence. */
export function describeFits(all: readonly Shortfall[]): string {
  return all.map((each) => describeFit(each).message()).join('; ');
}

/** Why it does not fit, in the words of the class. */
function describeFit(verdict: Shortfall): Refusal {
  const { resourceClass, asked, free } = verdict;
  const { reason, noun, unit } = wordsOf(resourceClass);
  const what = unit ? `${asked}${unit} of ${noun}` : `${asked} ${noun}`;
  switch (verdict.refusal) {
    case 'Insufficient':
      return refuse(`Insufficient${reason}`, `${what} asked, ${free}${unit} free: ${asked - free}${unit} too little`);
    case 'NoInventory':
      return refuse(`Insufficient${reason}`, `it has no ${noun}`);
    case 'TooFew':
      return refuse(
        `Insufficient${reason}`,
        `${asked} with ${verdict.each}${unit} ${noun} free each asked, ${free} there`,
      );
    case 'BelowMinUnit':
    case 'AboveMaxUnit':
    case 'NotAStep':
      return refuse(`Unit${reason}`, `${what} at once is not given here (${verdict.refusal})`);
  }
}
