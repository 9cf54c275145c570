// Drains while an instance moves: when the move counts as done, and what a cancelled drain ends.

import { describe, expect, it } from 'vitest';
import type { Instance } from '../../api/resources/instance.ts';
import { drain } from '../controllers/hosts/drain.ts';
import { options } from '../controllers/hosts/test-drained-fleet.ts';
import { beginDrain, cancelDrain, showDrainPlan } from '../operations/plans/host-drain.ts';
import { isDraining } from '../state/conditions.ts';
import { keys } from '../state/keys.ts';
import { addRecord, commitPlan, testContext, testFleet, testGuest, testInstance } from '../testing.ts';

const drivers = [{ name: 'fake', available: true, offers: ['migration' as const] }];
const room = { VCPU: 1, MEMORY_MB: 512 };

function drained(status: Partial<Instance['status']> = {}) {
  let ids = 0;
  const ctx = testContext({ nowMs: 1_000_000, newId: (prefix) => `${prefix}_${String(++ids).padStart(26, '0')}` });
  const cache = testFleet({ a: { status: { drivers } }, b: { status: { drivers } } });
  const instance = testInstance(
    'db',
    {},
    {
      ...{ phase: 'Running', host: 'a', incarnation: 1, assigned: room },
      ...{ observedGeneration: 1, guest: testGuest({ state: 'running', ready: true }), ...status },
    },
  );
  addRecord(cache, instance);
  const [provider] = cache.providersOfHost('a');
  const consumer = { id: instance.metadata.id, incarnation: 1, project: 'default', name: 'db' };
  const amounts = { [provider?.value.id ?? '']: room };
  addRecord(cache, { kind: 'allocation', consumer, host: 'a', driver: 'fake', amounts });

  const input = { host: 'a', options };
  const { plan, shown } = showDrainPlan(cache, input, ctx);
  commitPlan(cache, plan);
  commitPlan(cache, beginDrain(cache, { ...input, hash: shown.hash }, ctx).plan);
  commitPlan(cache, drain.reconcile(cache, keys.hostPlan('a'), ctx));
  const key = keys.instance('default', 'db');
  const found = () => {
    const entry = cache.get('instance', key);
    if (!entry) throw new Error('it is gone');
    return entry;
  };
  const change = (value: Instance) => commitPlan(cache, { changes: [{ key, ifRevision: found().revision, value }] });
  const cancel = () => {
    const { plan: ends, ended } = cancelDrain(cache, 'a', ctx);
    commitPlan(cache, ends);
    return ended;
  };
  const progress = () => {
    commitPlan(cache, drain.reconcile(cache, keys.hostPlan('a'), ctx));
    const { phase, guests = [] } = cache.get('hostPlan', keys.hostPlan('a'))?.value ?? {};
    return [phase, ...guests.map((guest) => guest.progress)];
  };
  return { cache, shown, found, change, cancel, progress };
}

describe('a drain whose guest is stopped for its move', () => {
  const at = (value: Instance, step: 'Copying' | 'Finishing' | 'Failed', host: string): Instance => {
    const { migration } = value.status;
    if (!migration) throw new Error('it does not move');
    return { ...value, status: { ...value.status, phase: 'Stopped', host, migration: { ...migration, step } } };
  };

  it.each([
    ['waits while its files are copied', 'Copying', 'a', ['Draining', 'leaving']],
    ['is done once the move has committed', 'Finishing', 'b', ['Drained', 'done']],
    ['is incomplete when the move has failed', 'Failed', 'a', ['Incomplete', 'failed']],
  ] as const)('%s', (_what, step, host, expected) => {
    const { found, change, progress } = drained();
    change(at(found().value, step, host));
    expect(progress()).toEqual(expected);
  });
});

describe('a cancelled drain', () => {
  it('ends a move that has not committed, and says that the instance stays', () => {
    const { cache, found, cancel } = drained();
    expect(found().value.status.migration?.step).toBe('Preparing');
    expect(cancel()).toMatchObject({
      phase: 'Cancelled',
      guests: [{ name: 'db', progress: 'left', message: 'its move was ended; it stays here' }],
    });
    expect(found().value.status).toMatchObject({
      host: 'a',
      migration: { step: 'Cancelled', message: 'the drain of host a was cancelled' },
    });
    expect(isDraining(cache.get('host', 'hosts/a')?.value)).toBe(false);
  });

  it('lets a move that has committed go on, and says where', () => {
    const { found, change, cancel } = drained();
    const { value } = found();
    const { migration } = value.status;
    if (!migration) throw new Error('it does not move');
    change({ ...value, status: { ...value.status, host: 'b', migration: { ...migration, step: 'Finishing' } } });
    expect(cancel().guests).toMatchObject([
      { progress: 'done', message: 'its move was committed before; it goes on at b' },
    ]);
    expect(found().value.status.migration?.step).toBe('Finishing');
  });

  it('names a deletion that has begun', () => {
    const { found, change, cancel } = drained();
    const { value } = found();
    change({ ...value, metadata: { ...value.metadata, deletionRequestedAtMs: 1_000_000 } });
    expect(cancel().guests).toMatchObject([{ message: 'it goes on: its deletion has begun' }]);
  });
});
