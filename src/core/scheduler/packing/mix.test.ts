import { describe, expect, it } from 'vitest';
import type { InstanceSpec } from '../../../api/resources/instance.ts';
import type { Cache } from '../../state/cache.ts';
import { addRecord, testCache, testImage, testInstance } from '../../testing.ts';
import { fleetOf } from '../fleet.ts';

const small = { cpus: 1, gpus: { count: 1, share: 500 } };
const large = { cpus: 8, gpus: { count: 2, models: ['A100'] } };

function ask(cache: Cache, count: number, spec: Partial<InstanceSpec>, from = 0): void {
  for (let i = from; i < from + count; i++) addRecord(cache, testInstance(`i${i}`, spec));
}

describe('the mix', () => {
  it('groups what is asked for by GPUs, with a distribution of CPUs', () => {
    const cache = testCache([testImage()]);
    ask(cache, 2, small);
    ask(cache, 1, { ...small, cpus: 4 }, 2);
    ask(cache, 1, { cpus: 3 }, 3);
    expect(fleetOf(cache).mix.typical.at([])).toEqual({
      strangers: 0.25,
      classes: [{ count: 1, milli: 500, cpus: [1, 4], shareUpTo: [0.5, 0.75], share: 0.75 }],
    });
    expect(fleetOf(cache).mix.typical.cpusPerMilli).toBe(9 / 1500);
  });

  it('counts as strangers those who want another model', () => {
    const cache = testCache([testImage()]);
    ask(cache, 1, small);
    ask(cache, 1, large, 1);
    const { typical } = fleetOf(cache).mix;
    expect(typical.at(['CUSTOM_GPU_T4']).strangers).toBe(0.5);
    expect(typical.at(['CUSTOM_GPU_A100']).strangers).toBe(0);
  });

  it('takes a new picture when what is asked for has changed, not for more of the same', () => {
    const cache = testCache([testImage()]);
    const fleet = fleetOf(cache);
    ask(cache, 20, small);
    const { typical } = fleet.mix;
    ask(cache, 100, small, 20);
    expect(fleet.mix.typical).toBe(typical);
    const { layout } = fleet;
    ask(cache, 130, large, 120);
    expect(fleet.mix.typical).not.toBe(typical);
    expect(fleet.layout).toBeGreaterThan(layout);
  });

  it('remembers who is gone, and forgets what was asked for long ago', () => {
    const cache = testCache([testImage()]);
    const fleet = fleetOf(cache);
    expect(fleet.mix.typical.total).toBe(0);
    ask(cache, 10, large);
    for (let i = 0; i < 10; i++) {
      const revision = cache.revision + 1;
      cache.apply([{ key: `instances/default/i${i}`, value: null, revision }], revision);
    }
    const { typical } = fleet.mix;
    expect(typical.at(['CUSTOM_GPU_A100']).strangers).toBe(0);
    ask(cache, 40_000, { cpus: 1 }, 100);
    expect(fleet.mix.typical.at(['CUSTOM_GPU_A100']).strangers).toBeGreaterThan(0.9);
  });
});
