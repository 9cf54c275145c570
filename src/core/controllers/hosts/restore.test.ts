import { describe, expect, it } from 'vitest';
import type { RestoreOptions } from '../../../api/plans/host-restore.ts';
import { deleteInstance } from '../../operations/instance.ts';
import { beginMigration } from '../../operations/instances/migrate.ts';
import { cancelDrain } from '../../operations/plans/host-drain.ts';
import { beginRestore, cancelRestore, showRestorePlan } from '../../operations/plans/host-restore.ts';
import { keys } from '../../state/keys.ts';
import { commitPlan } from '../../testing.ts';
import { World } from './test-drained-fleet.ts';

const options: RestoreOptions = { movesMax: 1, deadlineMs: 600_000 };
const names = ['one', 'two', 'three'];

/** Three instances that a drain of host a has moved away; the host is open again. */
function drained(hosts = ['a', 'b', 'c']): World {
  const world = new World(hosts, { moves: true });
  for (const host of hosts.slice(1)) close(world, host, true);
  for (const name of names) world.instance(name);
  for (const host of hosts.slice(1)) close(world, host, false);
  empty(world, 'a');
  return world;
}

const close = (world: World, host: string, paused: boolean): void => world.change(host, { spec: { paused } });

function empty(world: World, host: string): void {
  world.apply({}, undefined, host);
  world.settle();
  expect([world.drain(host)?.phase, world.on(host)]).toEqual(['Drained', []]);
  commitPlan(world.cache, cancelDrain(world.cache, host, world.ctx()).plan);
}

const planOf = (world: World, host = 'a') => showRestorePlan(world.cache, { host, options }, world.ctx());
const whatOf = (world: World, host = 'a') => planOf(world, host).guests.map(({ name, action }) => [name, action]);

function begin(world: World, host = 'a', hash = planOf(world, host).hash): void {
  commitPlan(world.cache, beginRestore(world.cache, { host, options, hash }, world.ctx()).plan);
}

const restoreOf = ({ cache }: World, host = 'a') => cache.get('hostRestore', keys.hostRestore(host))?.value;
const namesOn = (world: World, host: string) => world.on(host).map(({ metadata }) => metadata.name);

describe('the restore of a host', () => {
  it('brings back what drains have moved away, one at a time, and forgets where it came from', () => {
    const world = drained();
    begin(world);
    world.settle(() => {
      const moving = world.instances().filter(({ status }) => /^(Prep|Copy)/.test(status.migration?.step ?? ''));
      expect(moving.length).toBeLessThanOrEqual(1);
    });
    expect([restoreOf(world)?.phase, world.on('a').length]).toEqual(['Restored', 3]);
    expect(world.instances().filter(({ status }) => status.drainedFrom !== undefined)).toEqual([]);
    expect(planOf(world).guests).toEqual([]);
  });

  it('brings back from the host where a second drain has put it', () => {
    const world = drained();
    close(world, 'a', true);
    empty(world, 'b');
    empty(world, 'c');
    close(world, 'a', false);
    expect(whatOf(world, 'b')).toEqual([]);
    expect(whatOf(world, 'c')).toEqual([]);
    expect(whatOf(world)).toEqual([
      ['one', 'move'],
      ['three', 'move'],
      ['two', 'move'],
    ]);
  });

  it('leaves what its user has moved or removed', () => {
    const world = drained(['a', 'b', 'c']);
    const [{ metadata, status } = { metadata: undefined, status: undefined }] = world.instances();
    const target = { name: metadata?.name ?? '', project: 'default' };
    const to = status?.host === 'b' ? 'c' : 'b';
    commitPlan(world.cache, beginMigration(world.cache, { ...target, options: { to } }, world.ctx()).plan);
    world.settle();
    const gone = names.find((name) => name !== target.name) ?? '';
    commitPlan(world.cache, deleteInstance(world.cache, { project: 'default', name: gone }, world.ctx()).plan);
    world.settle();
    expect(planOf(world).guests.map(({ name }) => name)).toEqual(
      names.filter((name) => name !== gone && name !== target.name),
    );
  });

  it('says that the host does not take all of them any more', () => {
    const world = drained();
    for (const host of ['b', 'c']) close(world, host, true);
    world.instance('large', { memoryMiB: 15_000 });
    for (const host of ['b', 'c']) close(world, host, false);
    expect(planOf(world).guests.map(({ action, reasons }) => [action, reasons[0]?.code])).toEqual([
      ['move', 'Cold'],
      ['move', 'Cold'],
      ['stays', 'NoHost'],
    ]);
    begin(world);
    world.settle();
    expect([restoreOf(world)?.phase, world.on('a').length]).toEqual(['Incomplete', 3]);
  });

  it('is refused by another hash, while the host is closed, and beside another one', () => {
    const world = drained();
    const { hash } = planOf(world);
    commitPlan(world.cache, deleteInstance(world.cache, { project: 'default', name: 'one' }, world.ctx()).plan);
    expect(() => begin(world, 'a', hash)).toThrow('now 2 of 2 instances would return');
    begin(world);
    expect(() => begin(world, 'a', hash)).toThrow('being restored by another plan');
    world.settle();
    world.apply({});
    expect(() => planOf(world)).toThrow('host "a" is still closed');
  });

  it('ends when it is cancelled, and when its host is drained again', () => {
    for (const end of ['cancel', 'drain']) {
      const world = drained();
      begin(world);
      world.turns(1, () => {});
      if (end === 'cancel') commitPlan(world.cache, cancelRestore(world.cache, 'a', world.ctx()).plan);
      else world.apply({});
      world.settle();
      expect([end, restoreOf(world)?.phase]).toEqual([end, 'Cancelled']);
      expect(namesOn(world, 'a').length).toBeLessThan(3);
      expect(world.instances().every(({ status }) => status.migration?.step !== 'Copying')).toBe(true);
    }
  });

  it('ends at its deadline, and its record goes a week later', () => {
    const world = drained();
    begin(world);
    world.nowMs += options.deadlineMs;
    world.settle();
    const { phase, guests = [] } = restoreOf(world) ?? {};
    expect([phase, new Set(guests.map(({ progress }) => progress))]).toEqual(['Incomplete', new Set(['left'])]);
    world.nowMs += 7 * 86_400_000;
    world.settle();
    expect(restoreOf(world)).toBeUndefined();
  });
});
