import { expect, it } from 'vitest';
import type { Instance } from '../../api/resources/instance.ts';
import { hostLost, mayRunUnseen, restored } from '../state/guest-phase.ts';
import { testHost, testInstance } from '../testing.ts';
import { assignmentOf } from './assignment.ts';
import { restoredRecord } from './restored-record.ts';

const now = { nowMs: 5_000, newestSession: 9 };
const withStatus = (status: Partial<Instance['status']>, spec: Partial<Instance['spec']> = {}): Instance => {
  const instance = testInstance('a');
  return { ...instance, spec: { ...instance.spec, ...spec }, status: { ...instance.status, ...status } };
};
const running = (reason: string) => [{ type: 'Running', status: 'True' as const, reason, message: 'x', sinceMs: 1 }];
const bound = { host: 'h1', incarnation: 3 } as const;

it.each<[string, Partial<Instance['spec']>, Partial<Instance['spec']>]>([
  ['is over', { expiresAtMs: 1 }, { expiresAtMs: 3_605_000 }],
  ['ends soon', { ttlMs: 60_000 }, { expiresAtMs: 3_605_000 }],
  ['ends later', { ttlMs: 86_400_000 }, { ttlMs: 86_400_000 }],
  ['has no end', {}, {}],
])('an instance whose time %s can be extended again after a restore', (_, spec, kept) => {
  const record = restoredRecord(withStatus({}, spec), now);
  const { ttlMs, expiresAtMs } = record?.kind === 'instance' ? record.spec : {};
  expect({ ttlMs, expiresAtMs }).toEqual({ ttlMs: undefined, expiresAtMs: undefined, ...kept });
});

it.each([
  {
    name: 'that runs',
    status: { ...bound, phase: 'Running', conditions: running('Started') },
    phase: 'Running',
    kept: true,
  },
  { name: 'that starts', status: { ...bound, phase: 'Starting', conditions: [] }, phase: 'Starting', kept: true },
  { name: 'that is stopped', status: { ...bound, phase: 'Stopped', conditions: [] }, phase: 'Stopped', kept: true },
  {
    name: 'out of sight',
    status: { ...bound, phase: 'Failed', conditions: running(hostLost) },
    phase: 'Scheduled',
    kept: true,
  },
  {
    name: 'that failed',
    status: { ...bound, phase: 'Failed', conditions: running('Crashed') },
    phase: 'Failed',
    kept: false,
  },
  { name: 'that ended', status: { ...bound, phase: 'Exited', conditions: [] }, phase: 'Exited', kept: false },
  { name: 'that waits', status: { phase: 'Pending', conditions: [] }, phase: 'Pending', kept: false },
  {
    name: 'that waits and is exclusive',
    status: { phase: 'Pending', conditions: [] },
    exclusive: true,
    phase: 'Failed',
    kept: true,
  },
] as const)('an instance $name comes back $phase; unknown: $kept', ({ status, phase, kept, ...spec }) => {
  const record = restoredRecord(
    withStatus({ ...status, conditions: [...status.conditions] }, 'exclusive' in spec ? { exclusive: true } : {}),
    now,
  );
  expect(record).toMatchObject({ status: { phase } });
  const conditions = record?.kind === 'instance' ? record.status.conditions : [];
  expect(conditions.find(({ type }) => type === 'Running')?.reason === restored).toBe(kept);
});

it('orders a host to keep what the backup says to be on it, and to begin nothing', () => {
  const record = restoredRecord(withStatus({ ...bound, phase: 'Running', conditions: running('Started') }), now);
  const instance = record?.kind === 'instance' ? record : expect.unreachable();
  const allocation = {
    key: 'allocations/x',
    revision: 1,
    value: {
      kind: 'allocation' as const,
      consumer: { id: instance.metadata.id, incarnation: 3, project: 'default', name: 'a' },
      host: 'h1',
      amounts: { p1: { VCPU: 1 } },
      driver: 'fake',
    },
  };
  expect(assignmentOf(allocation, { key: 'instances/default/a', revision: 1, value: instance }, undefined).want).toBe(
    'kept',
  );
});

it('lets no session that the backup does not know be taken for a later one', () => {
  const [host] = testHost('h1');
  const record = restoredRecord({ ...host, status: { ...host.status, epoch: 7, session: 'old' } }, now);
  expect(record).toMatchObject({
    kind: 'host',
    status: { conditions: [{ type: 'Ready', status: 'False', reason: restored }] },
  });
  const status = record?.kind === 'host' ? record.status : expect.unreachable();
  expect(status.epoch).toBeGreaterThan(1_000_000);
  expect(status.session).toBeUndefined();
});

it('takes back no leases and no leader', () => {
  expect(restoredRecord({ kind: 'lease', host: 'h1', epoch: 1, renewedAtMs: 1 }, now)).toBeNull();
  expect(restoredRecord({ kind: 'leader', holder: 'one', term: 3 }, now)).toBeNull();
});

it('does not let what is exclusive and had failed be started again by itself', () => {
  const failed = withStatus(
    { ...bound, phase: 'Failed', conditions: running('Crashed') },
    { exclusive: true, restartPolicy: 'OnFailure' },
  );
  const record = restoredRecord(failed, now);
  expect(record?.kind === 'instance' && mayRunUnseen(record)).toBe(true);
  expect(record).toMatchObject({ status: { phase: 'Failed' } });
});
