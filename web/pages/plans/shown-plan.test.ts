import { expect, it } from 'vitest';
import type { HostPlan, PlannedGuest } from '../../../src/api/plans/host-plan.ts';
import type { RolloutPlan } from '../../../src/api/plans/rollout-plan.ts';
import { hostPlanShown, rebalanceShown, removalShown, resizeShown, rolloutShown, scaleShown } from './shown-plan.ts';

const guest = (name: string, action: PlannedGuest['action'], target?: string): PlannedGuest => ({
  kind: 'instance',
  id: name,
  project: 'default',
  name,
  generation: 1,
  incarnation: 1,
  action,
  ...(target === undefined ? {} : { target }),
  reasons: [{ code: 'X', message: `because ${name}` }],
  amounts: { VCPU: 1, MEMORY_MB: 2048 },
});

it('shows what a drain leaves, and whether a host may be lost before and after', () => {
  const survival = { survives: true, hosts: 3, notShown: [], notShownCount: 0 };
  const plan: HostPlan = {
    verb: 'drain',
    host: 'h1',
    hostId: 'id',
    hash: 'abcdefgh',
    options: { stopOthers: false, movesMax: 2, deadlineMs: 3_600_000, atDeadline: 'leave' },
    madeAtMs: 0,
    expiresAtMs: 1,
    guests: [guest('a', 'replace', 'h2'), guest('b', 'stays')],
    room: { VCPU: { capacity: 8, free: 3 } },
    before: survival,
    after: { survives: false, hosts: 2, notShown: ['h2'], notShownCount: 1 },
  };
  const { hash, facts, rows, notes } = hostPlanShown(plan);
  expect(hash).toBe('abcdefgh');
  expect(facts).toEqual([
    { name: 'On host h1', before: '2', after: '1' },
    {
      name: 'N-1',
      before: 'the fleet survives the loss of any one host (3 with instances)',
      after: 'after the loss of h2, instances may not fit elsewhere (1 of 2 hosts)',
    },
    { name: 'Free VCPU on the other hosts', before: '', after: '3 VCPU of 8 VCPU' },
  ]);
  expect(rows.map(({ name, action, before, after, bad }) => [name, action, before, after, bad])).toEqual([
    ['a', 'replaced', 'h1: 1 VCPU, 2 GiB', 'h2', false],
    ['b', 'cannot move', 'h1: 1 VCPU, 2 GiB', 'h1', true],
  ]);
  expect(notes).toEqual(['Instances that still run after 1 h stay, and the host stays closed.']);
});

it('cannot apply a rebalance that moves nothing', () => {
  const plan = { hash: 'x', hosts: [], needMigration: [], inUse: { before: 2, after: 2 }, moves: 0 };
  expect(rebalanceShown(plan as unknown as Parameters<typeof rebalanceShown>[0]).obstacles).toHaveLength(1);
});

it('shows amounts before and after a resize', () => {
  const shown = resizeShown({
    instance: 'a',
    instanceId: 'id',
    project: 'p',
    host: 'h1',
    before: { VCPU: 1, MEMORY_MB: 512 },
    after: { VCPU: 2, MEMORY_MB: 512 },
    restarts: true,
    hash: 'x',
    options: {},
    obstacles: [{ code: 'X', message: 'too large' }],
    wouldFit: ['h2'],
  });
  expect(shown.facts).toEqual([
    { name: 'VCPU', before: '1 VCPU', after: '2 VCPU' },
    { name: 'memory', before: '512 MiB', after: '512 MiB' },
  ]);
  expect([shown.obstacles, shown.notes]).toEqual([['too large'], ['These hosts have enough capacity: h2.']]);
});

it('names the copies that go', () => {
  const shown = scaleShown(
    { before: 3, replicas: 1, create: 0, remove: ['w-2', 'w-1'], hash: 'x', applied: false },
    { project: 'p' },
  );
  expect(shown.rows.map(({ name, action }) => `${name} ${action}`)).toEqual(['w-2 removed', 'w-1 removed']);
  expect(shown.facts).toEqual([{ name: 'Desired copies', before: '3', after: '1' }]);
  expect(shown.hash).toBe('x');
});

const rollout: RolloutPlan = {
  ...{ verb: 'update', workload: 'w', workloadId: 'wkl_1', project: 'p', hash: 'x' },
  changes: [{ field: 'template.spec.image', before: 'a', after: 'b' }],
  ...{ revision: { before: 2, after: 3 }, replicas: { before: 3, after: 3 } },
  ...{ strategy: 'RollingUpdate', surge: 1, unavailable: 0, paused: false },
  ...{ replaced: 2, kept: 1, created: 0, removed: [] },
  hosts: [{ host: 'h1', copies: 1 }, { copies: 1 }],
  copies: [
    { instance: 'w-0', host: 'h1', revision: 2 },
    { instance: 'w-1', revision: 1 },
  ],
};

it('shows which copies an update replaces, where they are, and how many at a time', () => {
  const shown = rolloutShown(rollout);
  expect(shown.summary).toBe('2 copies replaced, 1 kept: at most 4 copies exist at a time, at least 3 stay available.');
  expect(shown.facts).toEqual([
    { name: 'Revision', before: '2', after: '3' },
    { name: 'template.spec.image', before: 'a', after: 'b' },
  ]);
  expect(shown.rows.map(({ name, action, before, why }) => [name, action, before, why])).toEqual([
    ['w-0', 'replaced', 'h1', 'it has revision 2'],
    ['w-1', 'replaced', 'no host yet', 'it has revision 1'],
  ]);
  expect(shown.notes).toEqual(['Copies that are replaced, by host: h1: 1, no host yet: 1.']);
});

it('cannot apply an update that changes nothing', () => {
  expect(rolloutShown({ ...rollout, changes: [] }).obstacles).toEqual(['nothing would change']);
});

it('has no hash for what nothing uses', () => {
  expect(removalShown('pool ci', { hash: 'x', count: 0, affected: [] }).hash).toBeUndefined();
});
