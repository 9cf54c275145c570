import { describe, expect, it } from 'vitest';
import { forgetfulTables } from './forgetful-tables.ts';
import { misplacedOf } from './museum.ts';
import { type PlantedBug, plantedBugs } from './planted-bugs.ts';

describe('the museum', () => {
  it('has every piece in its place, and each name once', async () => {
    expect(await misplacedOf(plantedBugs)).toEqual([]);
    expect(new Set(plantedBugs.map(({ name }) => name)).size).toBe(plantedBugs.length);
    expect(plantedBugs.length).toBeGreaterThanOrEqual(24);
  });

  it('has the places of the forgetful tables', async () => {
    expect(await misplacedOf(forgetfulTables)).toEqual([]);
  });

  it('fails when the place of a bug is gone, or is there twice', async () => {
    const gone: PlantedBug = {
      name: 'gone',
      reenacts: 'nothing',
      invariant: 1,
      file: 'sim/batch/tally.ts',
      find: 'no such text',
      replace: '',
    };
    expect(await misplacedOf([gone, { ...gone, find: 'counts' }])).toEqual([
      expect.stringContaining('"gone" has no place in src/sim/batch/tally.ts'),
      expect.stringMatching(/"gone" has \d+ places in src\/sim\/batch\/tally.ts/),
    ]);
  });
});
