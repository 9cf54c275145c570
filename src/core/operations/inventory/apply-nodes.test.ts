import { describe, expect, it } from 'vitest';
import type { Inventory, InventorySpec } from '../../../api/resources/inventory.ts';
import { hostHealth } from '../../controllers/hosts/host-health.ts';
import { task } from '../../controllers/tasks/task.ts';
import { fullScan } from '../../scheduler/engine/full-scan.ts';
import { fleetOf } from '../../scheduler/fleet.ts';
import { requestOf } from '../../scheduler/request.ts';
import { conditionOf } from '../../state/conditions.ts';
import type { Cache } from '../../state/cache.ts';
import { keys } from '../../state/keys.ts';
import {
  addRecord,
  commitPlan,
  testCache,
  testContext,
  testHost,
  testInstance,
  testImage,
  testTask,
} from '../../testing.ts';
import { registerHost } from '../host.ts';
import { releaseTask } from '../task.ts';
import { scheduleResultOf } from '../tasks/schedule.ts';
import { applyAbsent, applyNodes } from './apply-nodes.ts';
import { confirmLoss, createInventory } from './inventory.ts';
import { judgeList, noteState, orphans } from './judge-list.ts';
import { type NodeList, readNodes } from './read-nodes.ts';

const ctx = testContext();
const later = testContext({ nowMs: ctx.nowMs + 20_000 });
const node = (name: string, more: object = {}) => ({
  name,
  cpu: 8,
  memory: 4096,
  pool: 'metal',
  ip: '10.0.0.1',
  ...more,
});

function fleet(spec: Partial<InventorySpec> = {}): Cache {
  const cache = testCache([testImage()]);
  const whole: InventorySpec = {
    description: '',
    source: { kind: 'push' },
    intervalMs: 10_000,
    lossShareMax: 0.2,
    ...spec,
  };
  commitPlan(cache, createInventory(cache, { project: '', name: 'metal', labels: {}, spec: whole }, ctx).plan);
  return cache;
}

const inventoryOf = (cache: Cache): Inventory => {
  const entry = cache.get('inventory', keys.inventory('metal'));
  if (!entry) throw new Error('no inventory');
  return entry.value;
};
const listOf = (items: readonly object[]): Extract<NodeList, { ok: true }> => {
  const list = readNodes(items);
  if (!list.ok) throw new Error(list.why);
  return list;
};

/** As the server does it, in one chunk; returns how much was written. */
function apply(cache: Cache, items: readonly object[], now = ctx): number | 'held' {
  const list = listOf(items);
  const verdict = judgeList(cache, inventoryOf(cache), list);
  if (!verdict.apply) return 'held';
  const applied = applyNodes(
    cache,
    { inventory: 'metal', nodes: list.nodes, asOfMs: now.nowMs, settleMs: 20_000 },
    now,
  );
  commitPlan(cache, applied.plan);
  const absent = applyAbsent(cache, { inventory: 'metal', hosts: verdict.absent, atOnce: verdict.confirmed }, now);
  commitPlan(cache, absent.plan);
  return applied.plan.changes.length + absent.plan.changes.length;
}

function hold(cache: Cache, name: string, spec: object = {}): void {
  addRecord(cache, testTask(name, { cpus: 2, memoryMiB: 1024, ttlMs: 600_000, ...spec }));
  commitPlan(cache, task.reconcile(cache, keys.task('default', name), ctx));
}

const hostOf = (cache: Cache, name: string) => cache.get('host', keys.host(name))?.value;
const taskOf = (cache: Cache, name: string) => cache.get('task', keys.task('default', name))?.value;
const names = (cache: Cache) => [...cache.list('host')].map(({ value }) => value.metadata.name).sort();
const reservedOf = (cache: Cache, name: string) =>
  cache.providersOfHost(name).map(({ value }) =>
    Object.entries(value.inventories)
      .map(([of, { reserved }]) => `${of} ${reserved}`)
      .join(),
  );

describe('the hosts of a list', () => {
  it('are ready, without an agent, with amounts that are not overcommitted', () => {
    const cache = fleet();
    apply(cache, [node('m1', { usage_cpu: 3, usage_mem: 1000.5, model: 'R640', dedicated: true })]);
    expect(hostOf(cache, 'm1')).toMatchObject({
      spec: { pool: 'metal', dedicated: true, paused: false },
      status: { outside: { inventory: 'metal', ip: '10.0.0.1', model: 'R640', usage: { VCPU: 3, MEMORY_MB: 1001 } } },
    });
    expect(conditionOf(hostOf(cache, 'm1')?.status.conditions ?? [], 'Ready')?.status).toBe('True');
    expect(cache.providersOfHost('m1')[0]?.value.inventories).toMatchObject({
      VCPU: { total: 8, reserved: 3, allocationRatio: 1 },
      MEMORY_MB: { total: 4096, reserved: 1001, allocationRatio: 1 },
    });
    expect(hostHealth.reconcile(cache, keys.host('m1'), later).changes).toEqual([]);
  });

  it('are not written when nothing changed, and alone when one changed', () => {
    const cache = fleet();
    const items = Array.from({ length: 20 }, (_, i) => node(`m${i}`, { usage_cpu: 1 }));
    expect(apply(cache, items)).toBe(40); // host and provider
    expect(apply(cache, items, later)).toBe(0);
    expect(apply(cache, items.with(3, node('m3', { usage_cpu: 2 })), later)).toBe(2);
  });

  it('keep what operators decide', () => {
    const cache = fleet();
    apply(cache, [node('m1')]);
    const entry = cache.get('host', keys.host('m1'));
    if (!entry) throw new Error('no host');
    addRecord(cache, { ...entry.value, spec: { ...entry.value.spec, paused: true, pool: 'other' } });
    apply(cache, [node('m1')]);
    expect(hostOf(cache, 'm1')?.spec).toMatchObject({ paused: true, pool: 'metal' });
  });

  it("never take over an agent's host, and no agent takes over theirs", () => {
    const cache = fleet();
    for (const record of testHost('m1')) addRecord(cache, record);
    const list = listOf([node('m1'), node('m2')]);
    const { plan, refused } = applyNodes(
      cache,
      { inventory: 'metal', nodes: list.nodes, asOfMs: ctx.nowMs, settleMs: 0 },
      ctx,
    );
    commitPlan(cache, plan);
    expect(refused).toEqual([{ name: 'm1', why: 'host "m1" exists already, with an agent of its own' }]);
    const registration = {
      session: 's',
      machineId: 'm',
      agentId: 'a',
      capacity: {},
      reserved: {},
      labels: {},
    } as never;
    expect(() => registerHost(cache, { name: 'm2', registration }, ctx)).toThrow(/comes from inventory "metal"/);
  });
});

describe('placement', () => {
  it('puts tasks there, and /schedule names the address', () => {
    const cache = fleet();
    apply(cache, [node('m1')]);
    hold(cache, 't1', { placement: { pool: 'metal' } });
    const placed = taskOf(cache, 't1');
    if (!placed) throw new Error('no task');
    expect(scheduleResultOf(placed, cache)).toMatchObject({
      status: 'completed',
      result: { name: 'm1', ip: '10.0.0.1' },
    });
  });

  it('never puts instances there, nor tasks for an image', () => {
    const cache = fleet();
    apply(cache, [node('m1')]);
    const verdicts = [...fullScan(requestOf(cache, testInstance('web')), fleetOf(cache))];
    expect(verdicts.map(({ refusals }) => refusals.map(({ reason }) => reason))).toEqual([
      expect.arrayContaining(['HostOutside']),
    ]);
    hold(cache, 't1', { image: 'tiny' });
    expect(taskOf(cache, 't1')?.status.phase).toBe('Pending');
  });

  it.each([
    { max: 2, current: 1, tasks: 1 },
    { max: 2, current: 2, tasks: 0 },
    { max: 1, current: 3, tasks: 0 },
  ])('puts $tasks more there when $current of $max guests are', ({ max, current, tasks }) => {
    const cache = fleet();
    apply(cache, [node('m1', { max_vms: max, current_vms: current })]);
    for (const name of ['t1', 't2', 't3']) hold(cache, name);
    expect(['t1', 't2', 't3'].filter((name) => taskOf(cache, name)?.status.phase === 'Placed')).toHaveLength(tasks);
  });
});

it.each([
  { what: 'no guest reported', current: 0 },
  { what: 'both reported', current: 2 },
])('never more than max_vms once holds have settled: $what', ({ current }) => {
  const cache = fleet();
  apply(cache, [node('m1', { max_vms: 2, current_vms: 0 })]);
  for (const name of ['t1', 't2']) hold(cache, name, { cpus: 1 });
  apply(cache, [node('m1', { max_vms: 2, current_vms: current })], later);
  hold(cache, 't3', { cpus: 1 });
  expect(['t1', 't2', 't3'].filter((name) => taskOf(cache, name)?.status.phase === 'Placed')).toEqual(['t1', 't2']);
});

describe('reserved', () => {
  it.each([
    { what: 'usage of others', usage: 3, held: false, at: ctx, reserved: 3 },
    { what: 'a fresh hold is not in the usage', usage: 3, held: true, at: ctx, reserved: 3 },
    { what: 'a settled hold is in the usage', usage: 3, held: true, at: later, reserved: 1 },
    { what: 'a settled hold of more than the usage', usage: 1, held: true, at: later, reserved: 0 },
  ])('$what: $usage → $reserved', ({ usage, held, at, reserved }) => {
    const cache = fleet();
    apply(cache, [node('m1')]);
    if (held) hold(cache, 't1');
    apply(cache, [node('m1', { usage_cpu: usage })], at);
    expect(reservedOf(cache, 'm1')).toEqual([`VCPU ${reserved},MEMORY_MB 0`]);
  });

  it('counts the age of a hold from when the list was asked for, however late it is applied', () => {
    const cache = fleet();
    apply(cache, [node('m1')]);
    hold(cache, 't1');
    const { nodes } = listOf([node('m1', { usage_cpu: 3 })]);
    commitPlan(
      cache,
      applyNodes(cache, { inventory: 'metal', nodes, asOfMs: ctx.nowMs, settleMs: 20_000 }, later).plan,
    );
    expect(reservedOf(cache, 'm1')).toEqual(['VCPU 3,MEMORY_MB 0']);
  });
});

describe('a host that the list lacks', () => {
  const others = Array.from({ length: 9 }, (_, i) => node(`o${i}`));

  it('is removed after three lists, and not when it returns before', () => {
    const cache = fleet();
    apply(cache, [...others, node('m1')]);
    apply(cache, others);
    apply(cache, others);
    expect(names(cache)).toContain('m1');
    apply(cache, [...others, node('m1')]);
    apply(cache, others);
    apply(cache, others);
    expect(names(cache)).toContain('m1');
    apply(cache, others);
    expect(names(cache)).not.toContain('m1');
    expect(cache.providersOfHost('m1')).toEqual([]);
    expect(apply(cache, others)).toBe(0);
  });

  it('stays while something is held there, and takes nothing new', () => {
    const cache = fleet();
    apply(cache, [...others, node('m1', { pool: 'one' })]);
    hold(cache, 't1', { placement: { pool: 'one' } });
    for (const _ of [1, 2, 3]) apply(cache, others);
    expect(conditionOf(hostOf(cache, 'm1')?.status.conditions ?? [], 'Ready')?.reason).toBe('NotInInventory');
    hold(cache, 't2', { placement: { pool: 'one' } });
    expect(taskOf(cache, 't2')?.status.phase).toBe('Pending');
    expect(apply(cache, others)).toBe(0);
    const id = taskOf(cache, 't1')?.metadata.id ?? '';
    commitPlan(cache, releaseTask(cache, { key: keys.task('default', 't1'), id }, ctx).plan);
    apply(cache, others);
    expect(names(cache)).not.toContain('m1');
  });

  it('is not gone because its node is bad', () => {
    const cache = fleet();
    const many = Array.from({ length: 120 }, (_, i) => node(`o${i}`));
    apply(cache, many);
    for (const _ of [1, 2, 3]) expect(apply(cache, many.with(0, node('o0', { cpu: -1 })))).toBe(0);
    expect(names(cache)).toContain('o0');
  });

  it('is an orphan when its inventory is removed', () => {
    const cache = fleet();
    apply(cache, [node('m1')]);
    expect(orphans(cache)).toEqual(new Map());
    const { key, revision } = cache.get('inventory', keys.inventory('metal')) ?? { key: '', revision: 0 };
    commitPlan(cache, { changes: [{ key, ifRevision: revision, value: null }] });
    expect(orphans(cache)).toEqual(new Map([['metal', ['m1']]]));
  });
});

describe('the guard', () => {
  const ten = Array.from({ length: 10 }, (_, i) => node(`m${i}`));

  it.each([
    { what: 'nothing', left: 10, share: 0.2, held: false },
    { what: '2 of 10', left: 8, share: 0.2, held: false },
    { what: '2 of 10 at a share of 0', left: 8, share: 0, held: false },
    { what: '3 of 10', left: 7, share: 0.2, held: true },
    { what: '3 of 10 at a share of 0.3', left: 7, share: 0.3, held: false },
    { what: 'half', left: 5, share: 0.2, held: true },
    { what: 'all', left: 0, share: 0.2, held: true },
    { what: 'all at a share of 1', left: 0, share: 1, held: true },
  ])('$what is lost: held is $held', ({ left, share, held }) => {
    const cache = fleet({ lossShareMax: share });
    apply(cache, ten);
    expect(apply(cache, ten.slice(0, left)) === 'held').toBe(held);
    expect(names(cache)).toHaveLength(10);
  });

  it('holds the empty list of even one host, and applies an empty list to none', () => {
    const cache = fleet();
    expect(apply(cache, [])).toBe(0);
    apply(cache, [node('m1')]);
    expect(apply(cache, [])).toBe('held');
  });

  it('lets go what is confirmed, at once, and asks again about another loss', () => {
    const cache = fleet();
    apply(cache, ten);
    const verdict = judgeList(cache, inventoryOf(cache), listOf(ten.slice(0, 5)));
    if (verdict.apply) throw new Error('it is not held');
    const { waiting } = verdict;
    const { name, id } = inventoryOf(cache).metadata;
    const status = { ...inventoryOf(cache).status, state: 'Held', message: 'held', waiting } as const;
    commitPlan(cache, noteState(cache, { name, id, status }, ctx).plan);
    expect(noteState(cache, { name, id, status }, later).plan.changes).toEqual([]);
    expect(() => confirmLoss(cache, { name, hash: 'other' }, ctx)).toThrow(/waits for the confirmation of/);
    commitPlan(cache, confirmLoss(cache, { name, hash: waiting.hash }, ctx).plan);
    expect(apply(cache, ten.slice(0, 4))).toBe('held');
    apply(cache, ten.slice(0, 5));
    expect(names(cache)).toEqual(['m0', 'm1', 'm2', 'm3', 'm4']);
  });
});
