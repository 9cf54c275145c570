// Kept seeds: those that once failed, one a line with what they found; `large` before the number says that it was a fleet. They run first,
// for ever.

import { appendFile, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { SimOptions } from '../simulate.ts';

/** Where they are in a checkout; a build has none. */
export const keptSeedsFile: string = fileURLToPath(new URL('./seeds.txt', import.meta.url));

const messageCharactersMax = 160;

type Size = NonNullable<SimOptions['size']>;
const prefixes: Readonly<Record<Size, string>> = { small: '', fleet: 'large ' };

/** Of runs of this size. None where there is no such file. */
export async function keptSeeds(file: string, size: Size): Promise<number[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.split('\n').flatMap((line) => {
    const seed = new RegExp(`^${prefixes[size]}(\\d+)`).exec(line)?.[1];
    return seed === undefined ? [] : [Number(seed)];
  });
}

/** False when it is kept already. */
export async function keepSeed(
  file: string,
  { seed, size, found }: { readonly seed: number; readonly size: Size; readonly found: string },
): Promise<boolean> {
  if ((await keptSeeds(file, size)).includes(seed)) return false;
  const what = found.replaceAll(/\s+/g, ' ').slice(0, messageCharactersMax);
  await appendFile(file, `${prefixes[size]}${seed} ${what}\n`);
  return true;
}
