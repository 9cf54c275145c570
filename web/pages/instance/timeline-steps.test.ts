import { expect, it } from 'vitest';
import { stepsOf } from './timeline-steps.ts';

const metadata = { createdAtMs: 1_000 } as Parameters<typeof stepsOf>[0]['metadata'];
const status = (more: object) => more as Parameters<typeof stepsOf>[0]['status'];
const phases = [
  { name: 'image', startedAtMs: 1_200, durationMs: 300 },
  { name: 'disk', startedAtMs: 1_500, durationMs: 100 },
];

it.each([
  ['waits for a host', {}, ['queued 1000-']],
  ['was placed', { scheduledAtMs: 1_100 }, ['queued 1000-1100', 'starts 1100-']],
  [
    'is being started',
    { scheduledAtMs: 1_100, guest: { phases } },
    ['queued 1000-1100', 'image 1200-1500', 'disk 1500-1600', 'starts 1600-'],
  ],
  [
    'boots',
    { scheduledAtMs: 1_100, runningAtMs: 1_700, guest: { phases } },
    ['queued 1000-1100', 'image 1200-1500', 'disk 1500-1600', 'until ready 1700-'],
  ],
  [
    'is ready',
    { scheduledAtMs: 1_100, runningAtMs: 1_700, readyAtMs: 2_500, guest: { phases } },
    ['queued 1000-1100', 'image 1200-1500', 'disk 1500-1600', 'until ready 1700-2500'],
  ],
])('one that %s', (_, given, steps) => {
  expect(
    stepsOf({ metadata, status: status(given) }).map(({ name, fromMs, toMs }) => `${name} ${fromMs}-${toMs ?? ''}`),
  ).toEqual(steps);
});
