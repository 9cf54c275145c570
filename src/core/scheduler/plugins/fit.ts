// fit: the ledger has room for every resource class and every device that was asked for.

import type { Shortfall } from '../../ledger/ledger.ts';
import { assign } from '../../ledger/tree.ts';
import { type Refusal, refuse, type RoomPlugin } from '../framework.ts';

export const fit: RoomPlugin = {
  name: 'fit',
  summary: 'the host has enough of everything free',
  dependsOn: 'room',
  prepare(request, fleet) {
    // What columns tell: the most that one claim can get, and what is free in all. Who gives what of several providers is asked of the
    // ledger only where that is enough.
    const asked = Object.entries(request.amounts).flatMap(([resourceClass, amount]) =>
      amount > 0 ? [{ resourceClass, column: fleet.column(resourceClass), amount, inAll: amount }] : [],
    );
    for (const { amounts, count } of request.portions) {
      for (const [resourceClass, each] of Object.entries(amounts))
        asked.push({ resourceClass, column: fleet.column(resourceClass), amount: each, inAll: each * count });
    }
    const plain = request.portions.length === 0;
    const explained = (slot: number): Refusal => {
      if (fleet.tree(slot).length === 0) return refuse('NoInventory', 'its agent has never told what it has');
      return describeAll(shortfallsOf(slot));
    };
    const shortfallsOf = (slot: number): readonly Shortfall[] => {
      const assignment = assign(fleet.tree(slot), request);
      return assignment.fits ? [] : assignment.shortfalls;
    };
    /** Less than asked is free in all: the code is known at once, the sentence is made when someone reads it. */
    const tooLittle = (slot: number, resourceClass: string): Refusal =>
      refuse(`Insufficient${wordsOf(resourceClass).reason}`, () => describeFits(shortfallsOf(slot)));
    return {
      filter(slot) {
        for (const { resourceClass, column, amount, inAll } of asked) {
          if (column && amount <= (column.most[slot] ?? 0)) {
            if (inAll === amount || inAll <= (column.capacity[slot] ?? 0) - (column.used[slot] ?? 0)) continue;
            return explained(slot);
          }
          const free = column ? (column.capacity[slot] ?? 0) - (column.used[slot] ?? 0) : 0;
          return plain && amount > free && fleet.tree(slot).length > 0
            ? tooLittle(slot, resourceClass)
            : explained(slot);
        }
        if (plain && !fleet.stepped[slot]) return fleet.tree(slot).length === 0 ? explained(slot) : null;
        return assign(fleet.tree(slot), request).fits ? null : explained(slot);
      },
    };
  },
};

interface ClassWords {
  readonly reason: string;
  readonly noun: string;
  readonly unit: string;
}

const words: Readonly<Record<string, ClassWords>> = {
  VCPU: { reason: 'Cpu', noun: 'CPUs', unit: '' },
  MEMORY_MB: { reason: 'Memory', noun: 'memory', unit: ' MiB' },
  DISK_GB: { reason: 'Disk', noun: 'disk', unit: ' GiB' },
};

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
