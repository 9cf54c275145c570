import { expect, it } from 'vitest';
import type { Instance } from '../../../src/api/resources/instance.ts';
import { usualSteps } from './usual-steps.ts';

const started = (id: string, tookMs: number, { host = 'h1', image = 'tiny' } = {}): Instance =>
  ({
    metadata: { id, createdAtMs: 0 },
    spec: { image },
    status: {
      host,
      scheduledAtMs: 10,
      runningAtMs: 10 + tookMs,
      readyAtMs: 10 + tookMs,
      guest: { phases: [{ name: 'disk', startedAtMs: 10, durationMs: tookMs }] },
    },
  }) as unknown as Instance;

const own = started('own', 5_000);
const near = [100, 300, 200].map((tookMs, i) => started(`near-${i}`, tookMs));
const far = [900, 800, 700].map((tookMs, i) => started(`far-${i}`, tookMs, { host: 'h2' }));

it('is the median of those on the same host', () => {
  const usual = usualSteps(own, [own, ...near, ...far]);
  expect(usual).toMatchObject({ of: 3, sameHost: true });
  expect(usual?.stepsMs.get('disk')).toBe(200);
});

it('is that of all hosts where there are too few on its own', () => {
  const usual = usualSteps(own, [own, ...near.slice(0, 1), ...far]);
  expect(usual).toMatchObject({ of: 4, sameHost: false });
  expect(usual?.stepsMs.get('disk')).toBe(800);
});

it('is nothing without others of the same image', () => {
  expect(usualSteps(own, [own, ...near.map((_, i) => started(`x${i}`, 1, { image: 'other' }))])).toBeUndefined();
});
