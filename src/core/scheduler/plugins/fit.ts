// fit: the ledger has room for every requested resource class and device.

import { gpuClass } from '../../../api/resources/host-rules.ts';
import type { Shortfall } from '../../ledger/ledger.ts';
import { assign, compete, countTakers, type Portion } from '../../ledger/tree.ts';
import { type Refusal, refuse, type RoomPlugin } from '../framework.ts';
import { Column } from '../engine/column.ts';
import type { Slot } from '../engine/slot.ts';

export const fit: RoomPlugin = {
  name: 'fit',
  summary: 'the host has enough free resources',
  dependsOn: 'room',
  prepare(request, fleet) {
    const shortfallsOf = (slot: Slot): readonly Shortfall[] => {
      const assignment = assign(fleet.tree(slot), request);
      return assignment.fits ? [] : assignment.shortfalls;
    };
    const explained = (slot: Slot): Refusal =>
      fleet.tree(slot).length === 0
        ? refuse('NoInventory', 'its agent has not reported its resources')
        : describeAll(shortfallsOf(slot));
    /** The total free amount is too small: the code is known at once, the sentence is built when it is read. */
    const tooLittle = (reason: string): Refusal => refuse(reason, (slot) => describeFits(shortfallsOf(slot)));
    // What columns can decide: the most that one claim can get, and the total that is free. Which of several providers
    // gives what is computed by the ledger, only where that is enough.
    const asked = [{ amounts: request.amounts, count: 1 }, ...request.portions].flatMap(({ amounts, count }) =>
      Object.entries(amounts).flatMap(([resourceClass, amount]) => {
        const column = fleet.column(resourceClass) ?? none;
        const refusal = tooLittle(insufficient(resourceClass));
        return amount > 0 ? [{ column, amount, inAll: amount * count, refusal }] : [];
      }),
    );
    const portions = request.portions
      .filter((portion) => !isToldByColumns(portion))
      .map((portion) => ({ portion, refusal: tooLittle(portionReason(portion)) }));
    const apart = !compete(request);
    return {
      filter(slot) {
        for (const { column, amount, inAll, refusal } of asked) {
          const enough = amount <= column.most(slot);
          if (enough && inAll === amount) continue;
          const free = column.capacity(slot) - column.used(slot);
          if (inAll > free) return fleet.tree(slot).length === 0 ? explained(slot) : refusal;
          if (!enough) return explained(slot);
        }
        if (asked.length === 0 && fleet.tree(slot).length === 0) return explained(slot);
        if (fleet.stepped[slot] || !apart) return assign(fleet.tree(slot), request).fits ? null : explained(slot);
        for (const { portion, refusal } of portions)
          if (countTakers(fleet.tree(slot), portion) < portion.count) return refusal;
        return null;
      },
    };
  },
};

/** For a class that no host has. */
const none = new Column('', 0);

/** Whether the provider with the most free decides, whichever it is. */
function isToldByColumns({ amounts, count, traitsAnyOf, traits }: Portion): boolean {
  return count === 1 && traitsAnyOf.length === 0 && traits === undefined && Object.keys(amounts).length === 1;
}

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

/** The first shortfall is counted; the message lists all, so that they can be fixed in one go. */
function describeAll(all: readonly Shortfall[]): Refusal {
  const [first] = all;
  return refuse(first ? describeFit(first).reason : 'Insufficient', () => describeFits(all));
}

/** All shortfalls in one sentence. */
export function describeFits(all: readonly Shortfall[]): string {
  return all.map((each) => describeFit(each).message).join('; ');
}

/** The shortfall in the words of its class. */
function describeFit(verdict: Shortfall): { readonly reason: string; readonly message: string } {
  const { resourceClass, asked, free } = verdict;
  const { reason, noun, unit } = wordsOf(resourceClass);
  const count = (amount: number): string =>
    unit ? `${amount}${unit} of ${noun}` : `${amount} ${amount === 1 && noun === 'CPUs' ? 'CPU' : noun}`;
  const what = count(asked);
  const insufficient = `Insufficient${reason}`;
  const unitRefusal = (given: string) => ({
    reason: `Unit${reason}`,
    message: `${what} asked, but here ${given}`,
  });
  switch (verdict.refusal) {
    case 'NoProvider':
      return {
        reason: 'ProviderMissing',
        message: `none of its providers has the traits and aggregates of group ${verdict.group ?? ''} of the query`,
      };
    case 'Apart':
      return {
        reason: 'SubtreeMismatch',
        message: `its providers for the groups ${verdict.group ?? ''} of the query are not in one subtree`,
      };
    case 'Insufficient': {
      const message = `${what} asked, ${free}${unit} free: needs ${asked - free}${unit} more`;
      return { reason: insufficient, message };
    }
    case 'NoInventory':
      return { reason: insufficient, message: `it has no ${noun}` };
    case 'TooFew': {
      const message = `${asked} with ${verdict.each}${unit} ${noun} free each asked, ${free} there`;
      return { reason: insufficient, message };
    }
    case 'BelowMinUnit':
      return unitRefusal(`at least ${verdict.limit}${unit} at once`);
    case 'AboveMaxUnit':
      return unitRefusal(`at most ${verdict.limit}${unit} at once`);
    case 'NotAStep':
      return unitRefusal(`only in steps of ${verdict.limit}${unit}`);
  }
}
