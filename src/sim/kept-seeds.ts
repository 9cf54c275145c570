// Kept seeds: those that once failed, one a line with what they found. They run first, for ever.

import { appendFile, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** Where they are in a checkout; a build has none. */
export const keptSeedsFile: string = fileURLToPath(new URL('./seeds.txt', import.meta.url));

const messageCharactersMax = 160;

/** None where there is no such file. */
export async function keptSeeds(file: string): Promise<number[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.split('\n').flatMap((line) => {
    const seed = Number(line.split(' ', 1)[0]);
    return line.trim() === '' || line.startsWith('#') || !Number.isInteger(seed) ? [] : [seed];
  });
}

/** False when it is kept already. */
export async function keepSeed(file: string, seed: number, found: string): Promise<boolean> {
  if ((await keptSeeds(file)).includes(seed)) return false;
  const what = found.replaceAll(/\s+/g, ' ').slice(0, messageCharactersMax);
  await appendFile(file, `${seed} ${what}\n`);
  return true;
}
