// Shared by the commands that create images: flags and amounts.

import type { ImageSpec } from '../../../api/resources/image.ts';
import { usageError } from '../../exit-codes.ts';
import { parseDiskGiB, parseInteger, parseMemoryMiB } from '../../options/units.ts';

export const imageFormats = ['qcow2', 'raw'] as const;
export const imagePackings = ['none', 'zstd', 'gzip', 'xz'] as const;

export interface AmountOptions {
  readonly cpus?: string;
  readonly memory?: string;
  readonly disk?: string;
}

/** The defaults for instances that request no amounts. */
export function amountsOf({ cpus, memory, disk }: AmountOptions): ImageSpec['defaults'] {
  return {
    ...(cpus === undefined ? {} : { cpus: parseInteger('--cpus', cpus, { min: 1, max: 1024 }) }),
    ...(memory === undefined ? {} : { memoryMiB: parseMemoryMiB(memory) }),
    ...(disk === undefined ? {} : { diskGiB: parseDiskGiB(disk) }),
  };
}

/** By the ending of a path or URL. */
export function packingOf(source: string): ImageSpec['decompress'] {
  const path = URL.parse(source)?.pathname ?? source;
  if (/\.zstd?$/.test(path)) return 'zstd';
  if (path.endsWith('.gz')) return 'gzip';
  return path.endsWith('.xz') ? 'xz' : 'none';
}

export function oneOf<T extends string>(flag: string, text: string, known: readonly T[]): T {
  const found = known.find((word) => word === text);
  if (!found) throw usageError(`${flag} cannot be "${text}"`, `choose one of: ${known.join(', ')}`);
  return found;
}
