import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { keepSeed, keptSeeds } from './kept-seeds.ts';

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-seeds-'));
  file = join(folder, 'seeds.txt');
});
afterEach(() => rm(folder, { recursive: true }));

it('keeps each seed once, and those of fleets apart', async () => {
  expect(await keptSeeds(file, 'small')).toEqual([]);
  expect(await keepSeed(file, { seed: 7, size: 'small', found: 'a fault\nof two lines' })).toBe(true);
  expect(await keepSeed(file, { seed: 7, size: 'small', found: 'again' })).toBe(false);
  expect(await keepSeed(file, { seed: 7, size: 'fleet', found: 'a large fault' })).toBe(true);
  expect(await keepSeed(file, { seed: 8, size: 'fleet', found: 'another' })).toBe(true);
  expect(await readFile(file, 'utf8')).toBe('7 a fault of two lines\nlarge 7 a large fault\nlarge 8 another\n');
  expect(await keptSeeds(file, 'small')).toEqual([7]);
  expect(await keptSeeds(file, 'fleet')).toEqual([7, 8]);
});
