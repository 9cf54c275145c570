import { availableParallelism } from 'node:os';
import { beforeAll, describe, expect, it } from 'vitest';
import { createSeedPool, type SeedPool } from '../batch/seed-pool.ts';
import { forgetfulTables } from './forgetful-tables.ts';

const jobs = Math.max(1, availableParallelism() - 1);

describe('tables that forget all the time', { timeout: 300_000 }, () => {
  const seeds = [3, 29, 211, 1782]; // which such a table has once changed
  const hashesIn = (pool: SeedPool) => Promise.all(seeds.map(async (seed) => (await pool.run({ seed })).traceHash));
  let plain: readonly string[] = [];
  beforeAll(async () => {
    const pool = createSeedPool({ jobs });
    plain = await hashesIn(pool).finally(() => pool.close());
  });

  it.each(forgetfulTables.map(({ name }) => name))('change nothing: %s', async (name) => {
    expect(plain).not.toContain('');
    const preload = new URL(`./plant-hook.ts?bug=${name}`, import.meta.url).href;
    const pool = createSeedPool({ jobs: 1, preload });
    const forgetful = await hashesIn(pool).finally(() => pool.close());
    expect(forgetful).toEqual(plain);
  });
});
