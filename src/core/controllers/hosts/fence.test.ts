import { expect, it } from 'vitest';
import type { InstanceSpec, InstanceStatus } from '../../../api/resources/instance.ts';
import { fenced } from '../../operations/hosts/fenced.ts';
import { commitPlan, testCache, testContext, testHost, testImage, testInstance } from '../../testing.ts';
import { fence } from './fence.ts';
import { hostLoss } from './host-loss.ts';

const key = 'hosts/h1';
const lostStatus: Partial<InstanceStatus> = {
  phase: 'Failed',
  host: 'h1',
  incarnation: 1,
  conditions: [{ type: 'Running', status: 'Unknown', reason: 'HostLost', message: 'lost', sinceMs: 0 }],
};

function down({
  spec = {},
  fencing = true,
  heldUntilMs,
}: {
  spec?: Partial<InstanceSpec>;
  fencing?: boolean;
  heldUntilMs?: number;
}) {
  let count = 0;
  const clock = { nowMs: 1_000_000 };
  const at = () =>
    testContext({
      nowMs: clock.nowMs,
      newId: (prefix) => `${prefix}_${++count}`,
      ...(fencing ? { policy: { fencing: true } } : {}),
    });
  const is = {
    atMs: 0,
    reason: 'Silent',
    message: 'silent',
    ...(heldUntilMs === undefined ? {} : { heldUntilMs }),
  } as const;
  const cache = testCache([
    testImage(),
    ...testHost('h1', { ready: false, status: { down: is } }),
    testInstance('web', { exclusive: true, onHostLoss: 'replace', ...spec }, lostStatus),
  ]);
  const id = cache.get('instance', 'instances/default/web')?.value.metadata.id ?? '';
  commitPlan(cache, {
    changes: [
      {
        key: `allocations/${id}/1`,
        ifRevision: 0,
        value: {
          kind: 'allocation',
          consumer: { id, incarnation: 1, project: 'default', name: 'web' },
          host: 'h1',
          driver: 'fake',
          amounts: {},
          ports: [],
        },
      },
    ],
  });
  const step = () => commitPlan(cache, fence.reconcile(cache, key, at()));
  const stateOf = () => cache.get('host', key)?.value.status.down;
  return { cache, clock, at, step, stateOf };
}

it('orders the power off, and takes only a state that was read back for a proof', () => {
  const { cache, clock, at, step, stateOf } = down({});
  step();
  expect(stateOf()?.fence).toMatchObject({ attempt: 1, state: 'ordered' });
  step();
  expect(stateOf()?.fence?.attempt).toBe(1);
  const outcome = { name: 'h1', attempt: 1, message: 'exit code 0; power state read back: on' };
  commitPlan(cache, fenced(cache, { ...outcome, off: false }, at()).plan);
  expect(stateOf()).toMatchObject({ fence: { state: 'failed' } });
  expect(stateOf()?.proof).toBeUndefined();
  clock.nowMs += 600_000;
  step();
  expect(fenced(cache, { ...outcome, off: true }, at()).changed).toBe(false); // of the first attempt
  commitPlan(cache, fenced(cache, { ...outcome, attempt: 2, off: true }, at()).plan);
  expect(stateOf()?.proof).toMatchObject({ kind: 'fenced' });
  commitPlan(cache, hostLoss.reconcile(cache, 'instances/default/web', at()));
  expect(cache.get('instance', 'instances/default/web')?.value.status).toMatchObject({
    phase: 'Pending',
    replaced: { host: 'h1', proof: { kind: 'fenced' } },
  });
});

it.each([
  ['no instance waits for a proof', { spec: { exclusive: false } }],
  ['its instances wait for the host', { spec: { onHostLoss: 'wait' as const } }],
  ['no hook is configured', { fencing: false }],
  ['many hosts fell silent together', { heldUntilMs: 1_100_000 }],
])('orders nothing where %s', (_, how) => {
  const { step, stateOf } = down(how);
  step();
  expect(stateOf()?.fence).toBeUndefined();
});
