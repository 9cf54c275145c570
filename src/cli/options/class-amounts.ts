// Amounts of resource classes in options: `cpus=64`, `memory=64GiB`, or by the name of the class, `VCPU=64`.

import { usageError } from '../exit-codes.ts';
import { parseDiskGiB, parseInteger, parseMemoryMiB } from './units.ts';

const classByWord: Readonly<Record<string, string>> = {
  cpu: 'VCPU',
  cpus: 'VCPU',
  memory: 'MEMORY_MB',
  disk: 'DISK_GB',
  instances: 'INSTANCES',
};

export interface ClassAmount {
  readonly resourceClass: string;
  /** Undefined for `CLASS=`, which removes the amount. */
  readonly amount: number | undefined;
}

export function parseClassAmount(flag: string, pair: string): ClassAmount {
  const [, word = '', text = ''] = /^([\w-]{1,64})=(.*)$/.exec(pair) ?? [];
  const resourceClass = resourceClassOf(word);
  if (!/^[A-Z][A-Z0-9_]*$/.test(resourceClass))
    throw usageError(
      `${flag} cannot be "${pair}"`,
      'write cpus=8, memory=64GiB, disk=1TiB, instances=20, or a resource class and its amount: VCPU=8',
    );
  return { resourceClass, amount: text === '' ? undefined : amountOf(`${flag} ${word}`, resourceClass, text) };
}

/** Accepts the words of other options beside the names of classes. */
export function resourceClassOf(word: string): string {
  return classByWord[word.toLowerCase()] ?? word;
}

/** A bare number is in the unit of the class. */
export function amountOf(flag: string, resourceClass: string, text: string): number {
  if (resourceClass === 'MEMORY_MB' && !/^\d+$/.test(text)) return parseMemoryMiB(text, flag);
  if (resourceClass === 'DISK_GB' && !/^\d+$/.test(text)) return parseDiskGiB(text, flag);
  return parseInteger(flag, text, { min: 0, max: 2 ** 40 });
}
