import { expect, it } from 'vitest';
import type { RunSpec } from '../../../../api/resources/run.ts';
import { verdictsOn } from '../test-rule.ts';

const run: RunSpec = { script: 'true', env: {}, artifacts: [], timeLimitMs: 1000, graceMs: 1000, holdOnFailure: false };
const hosts = {
  able: { status: { drivers: [{ name: 'qemu', available: true, runs: true }] } },
  old: { status: { drivers: [{ name: 'qemu', available: true }] } },
  zones: { status: { drivers: [{ name: 'zones', available: true }] } },
};

it('keeps programs away from hosts whose agent or driver runs none', () => {
  expect(verdictsOn('runs', hosts, { run })).toEqual({
    able: 'fits',
    old: 'RunsUnsupported: its agent cannot give guests of its driver qemu a program; update the agent',
    zones: 'RunsUnsupported: guests of its driver zones cannot run the program of a job',
  });
});

it('lets instances without a program go anywhere', () => {
  expect(verdictsOn('runs', hosts, {})).toEqual({ able: 'fits', old: 'fits', zones: 'fits' });
});
