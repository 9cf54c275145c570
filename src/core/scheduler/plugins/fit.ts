// fit: the ledger has room for every resource class asked for.

import { fit as fitInLedger, type Shortfall, shortfalls } from '../../ledger/ledger.ts';
import { fits, type Plugin, refuse, type Verdict } from '../framework.ts';

export const fit: Plugin = {
  name: 'fit',
  filter({ provider, used }, request) {
    if (!provider) return refuse('NoInventory', 'its agent has never told what it has');
    const verdict = fitInLedger(provider.value, used, request.amounts);
    return verdict.fits ? fits : describeAll(shortfalls(provider.value, used, request.amounts), verdict);
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

/** The first one is counted; people are told of all, so that they do not mend one after the other. */
function describeAll(all: readonly Shortfall[], first: Shortfall): Exclude<Verdict, { fits: true }> {
  const message = all.map((each) => describeFit(each).message).join('; ');
  return refuse(describeFit(first).reason, message);
}

/** Why it does not fit, in the words of the class. */
export function describeFit(verdict: Shortfall): Exclude<Verdict, { fits: true }> {
  const { resourceClass, asked, free } = verdict;
  const { reason, noun, unit } = words[resourceClass] ?? { reason: resourceClass, noun: resourceClass, unit: '' };
  const what = unit ? `${asked}${unit} of ${noun}` : `${asked} ${noun}`;
  switch (verdict.refusal) {
    case 'Insufficient':
      return refuse(`Insufficient${reason}`, `${what} asked, ${free}${unit} free: ${asked - free}${unit} too little`);
    case 'NoInventory':
      return refuse(`Insufficient${reason}`, `it has no ${noun}`);
    case 'BelowMinUnit':
    case 'AboveMaxUnit':
    case 'NotAStep':
      return refuse(`Unit${reason}`, `${what} at once is not given here (${verdict.refusal})`);
  }
}
