import { describe, expect, it } from 'vitest';
import type { Assignment } from '../../api/agent-protocol.ts';
import type { MigrateOptions } from '../../api/plans/migration-plan.ts';
import type { Instance, InstanceSpec } from '../../api/resources/instance.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import { type Prng, seededPrng } from '../../base/prng.ts';
import { overUse } from '../ledger/ledger.ts';
import { assignmentOf } from '../operations/assignment.ts';
import { deleteInstance, replaceInstance } from '../operations/instance.ts';
import { beginMigration, cancelMigration, showMigration } from '../operations/instances/migrate.ts';
import { applyReport } from '../operations/report.ts';
import { volumeAssignmentOf } from '../operations/volumes/volume-assignment.ts';
import { applyVolumeReport } from '../operations/volumes/volume-report.ts';
import { replaceVolume } from '../operations/volumes/volume.ts';
import type { Cache } from '../state/cache.ts';
import { keys } from '../state/keys.ts';
import type { Allocation } from '../state/records.ts';
import type { Entry } from '../state/snapshot.ts';
import { commitPlan, testContext, testFleet, testGuest, testInstance, testVolume } from '../testing.ts';
import { addRecord } from '../testing.ts';
import { garbage } from './garbage.ts';
import { migration } from './migration.ts';
import { powerOn } from './power-on.ts';

const drivers = [{ name: 'fake', available: true, offers: ['migration' as const] }];
const room = { VCPU: 1, MEMORY_MB: 512 };
const project = 'default';
const name = 'db';
const names = { project, name };

/** What a host has, and has been told. It obeys the newest order that it has read; a crash forgets nothing that is on disk. */
interface TestHost {
  readonly orders: Map<string, Assignment>;
  /** By incarnation: what there is of the instance. */
  readonly guests: Map<number, 'running' | 'stopped'>;
  readonly received: Map<number, string>;
  readonly volumes: Set<string>;
}

/** Two hosts that read orders and report when they are asked to, in any order. */
class World {
  readonly cache: Cache;
  readonly hosts = new Map<string, TestHost>();
  readonly volumeId: string;
  readonly id: string;
  nowMs = 1_000_000;
  #sequence = 0;
  #ids = 0;

  constructor(spec: Partial<InstanceSpec> = {}) {
    this.cache = testFleet({ a: { status: { drivers } }, b: { status: { drivers } } });
    const attached = { volumes: [{ name: 'data' }], ...spec };
    const instance = testInstance(name, attached, {
      ...{ phase: 'Running', host: 'a', incarnation: 1, assigned: room },
      ...{ observedGeneration: 1, guest: testGuest({ state: 'running', ready: true }) },
    });
    this.id = instance.metadata.id;
    addRecord(this.cache, instance);
    addRecord(this.cache, this.#allocation({ id: this.id, incarnation: 1, project, name }, room));
    const volume = testVolume(
      'data',
      { sizeGiB: 2 },
      {
        ...{ phase: 'Ready', made: true, observedGeneration: 1, host: 'a' },
        attachedTo: { instance: name, id: this.id },
      },
    );
    this.volumeId = volume.metadata.id;
    addRecord(this.cache, volume);
    const consumer = { kind: 'volume', id: this.volumeId, incarnation: 1, project, name: 'data' } as const;
    addRecord(this.cache, this.#allocation(consumer, { DISK_GB: 2 }));
    for (const host of ['a', 'b'])
      this.hosts.set(host, { orders: new Map(), guests: new Map(), received: new Map(), volumes: new Set() });
    this.host('a').guests.set(1, 'running');
    this.host('a').volumes.add(this.volumeId);
    this.read('a');
  }

  /** On host a. */
  #allocation(consumer: Allocation['consumer'], amounts: Amounts): Allocation {
    const [provider] = this.cache.providersOfHost('a');
    return {
      kind: 'allocation',
      consumer,
      host: 'a',
      driver: 'fake',
      amounts: { [provider?.value.id ?? '']: amounts },
    };
  }

  ctx = () =>
    testContext({ nowMs: this.nowMs, newId: (prefix) => `${prefix}_${String(++this.#ids).padStart(26, '0')}` });

  host(name: string): TestHost {
    const host = this.hosts.get(name);
    if (host === undefined) throw new Error(`no host ${name}`);
    return host;
  }

  get instance(): Instance {
    const found = this.cache.get('instance', keys.instance(project, name));
    if (!found) throw new Error('it is gone');
    return found.value;
  }

  get step(): string | undefined {
    return this.instance.status.migration?.step;
  }

  migrate(options: MigrateOptions = {}): void {
    const { hash } = showMigration(this.cache, names, options);
    commitPlan(this.cache, beginMigration(this.cache, { ...names, options, hash }, this.ctx()).plan);
  }

  cancel(): void {
    commitPlan(this.cache, cancelMigration(this.cache, names, this.ctx()).plan);
  }

  #allocations(host: string): Entry<Allocation>[] {
    return [...this.cache.allocationsOnHost(host)];
  }

  #volumeByName = (_project: string, volume: string) => this.cache.get('volume', keys.volume(project, volume))?.value;

  /** The agent reads what the control plane wants of it now. */
  read(name: string): void {
    const { orders } = this.host(name);
    orders.clear();
    for (const allocation of this.#allocations(name)) {
      const { consumer } = allocation.value;
      if (consumer.kind !== undefined) continue;
      const instance = this.cache.get('instance', keys.instance(consumer.project, consumer.name));
      const order = assignmentOf(allocation, instance, () => undefined, this.#volumeByName);
      orders.set(String(consumer.incarnation), order);
    }
  }

  /** The agent takes one step towards what it has read, as agent/guests/plan.ts does. */
  act(name: string): void {
    const host = this.host(name);
    for (const order of host.orders.values()) {
      const { incarnation, want } = order;
      const here = host.guests.get(incarnation);
      if (want === 'running' && here === 'stopped') host.guests.set(incarnation, 'running');
      else if (want === 'running' && here === undefined && host.received.has(incarnation)) {
        host.guests.set(incarnation, 'running');
        host.received.delete(incarnation);
        host.volumes.add(this.volumeId);
      } else if (want === 'stopped' && here === 'running') host.guests.set(incarnation, 'stopped');
      else if (want === 'absent') {
        host.guests.delete(incarnation);
        host.received.delete(incarnation);
      } else if (want === 'incoming' && order.migration?.copy) this.#copy(host, order);
    }
  }

  /** As agent/migration/moves.ts: the source lets its files be read under this move only, of a guest that it has stopped. */
  #copy(to: TestHost, { incarnation, migration: move }: Assignment): void {
    for (const from of this.hosts.values())
      for (const order of from.orders.values()) {
        if (order.migration?.id !== move?.id || order.migration?.role !== 'outgoing' || order.want !== 'stopped')
          continue;
        if (from.guests.get(order.incarnation) === 'running') continue;
        if (order.migration.volumes.join() !== this.volumeId) throw new Error('it moves without its volume');
        to.received.set(incarnation, move?.id ?? '');
      }
  }

  report(name: string): void {
    const host = this.host(name);
    for (const order of host.orders.values()) this.#reportGuest(name, order);
    for (const allocation of this.#allocations(name)) {
      const { consumer } = allocation.value;
      if (consumer.kind !== 'volume') continue;
      const entry = this.cache.get('volume', keys.volume(project, consumer.name));
      const { want } = volumeAssignmentOf(allocation, entry);
      if (want !== 'absent' || [...host.guests.keys()].length > 0) continue;
      host.volumes.delete(consumer.id);
      const seen = { volumeId: consumer.id, sequence: ++this.#sequence, observedGeneration: 1 };
      const report = { ...seen, volume: { state: 'absent' as const } };
      commitPlan(this.cache, applyVolumeReport(this.cache, { host: name, epoch: 1, report }, this.ctx()).plan);
    }
  }

  #reportGuest(name: string, { instanceId, incarnation, want, generation, migration: move }: Assignment): void {
    const host = this.host(name);
    const state = host.guests.get(incarnation);
    const base = { instanceId, incarnation, sequence: ++this.#sequence, observedGeneration: generation };
    const incoming = move && {
      ...{ id: move.id, bytes: 0 },
      state: host.received.get(incarnation) === move.id ? ('received' as const) : ('prepared' as const),
    };
    const guest =
      want === 'absent' && state === undefined && !host.received.has(incarnation)
        ? { state: 'absent' as const }
        : want === 'incoming' && incoming
          ? testGuest({ state: 'preparing', ready: false, incoming })
          : state === undefined
            ? undefined
            : testGuest({ state, ready: state === 'running' });
    if (guest === undefined) return;
    const input = { host: name, epoch: 1, report: { ...base, guest } };
    commitPlan(this.cache, applyReport(this.cache, input, this.ctx()).plan);
  }

  decide(): boolean {
    let changed = false;
    for (const controller of [migration, powerOn, garbage])
      for (const key of [...controller.keys(this.cache)]) {
        const plan = controller.reconcile(this.cache, key, this.ctx());
        if (plan.changes.length === 0) continue;
        commitPlan(this.cache, plan);
        changed = true;
      }
    return changed;
  }

  running(): string[] {
    return [...this.hosts].flatMap(([host, { guests }]) =>
      [...guests.values()].filter((state) => state === 'running').map(() => host),
    );
  }

  /** Everything goes on until nothing changes. */
  settle(): void {
    for (let round = 0; round < 30; round++) {
      for (const host of this.hosts.keys()) {
        this.read(host);
        this.act(host);
        this.report(host);
        this.decide();
        assertSound(this);
      }
      this.nowMs += 1000;
    }
  }
}

function assertSound(world: World): void {
  expect(world.running().length).toBeLessThanOrEqual(1);
  expect(overUse(world.cache)).toEqual([]);
  const { host } = world.instance.status;
  const [now] = world.running();
  if (now !== undefined) expect(now).toBe(host);
  // No file of the owner is gone.
  const owner = world.host(host ?? '');
  const { incarnation } = world.instance.status;
  expect(owner.guests.has(incarnation) || owner.received.has(incarnation)).toBe(true);
  expect(owner.volumes.has(world.volumeId) || owner.received.has(incarnation)).toBe(true);
}

/** Rest: one copy, one allocation each. */
function assertAtRest(world: World): void {
  expect(world.running()).toEqual([world.instance.status.host]);
  const held = [...world.cache.list('allocation')].map(({ value }) => value.host);
  expect(held).toEqual([world.instance.status.host, world.instance.status.host]);
  for (const [host, { volumes, received }] of world.hosts) {
    expect(received.size).toBe(0);
    expect(volumes.size, host).toBe(host === world.instance.status.host ? 1 : 0);
  }
}

describe('the move of an instance', () => {
  it('ends on its target, with its volume, as another incarnation', () => {
    const world = new World();
    world.migrate();
    world.settle();
    expect(world.step).toBe('Done');
    expect(world.instance.status).toMatchObject({ host: 'b', incarnation: 2, diskIncarnation: 1, phase: 'Running' });
    expect(world.cache.get('volume', keys.volume(project, 'data'))?.value.status).toMatchObject({ host: 'b', life: 2 });
    assertAtRest(world);
  });

  it('can be followed by the way back', () => {
    const world = new World();
    world.migrate();
    world.settle();
    world.migrate({ to: 'a' });
    world.settle();
    expect(world.instance.status).toMatchObject({ host: 'a', incarnation: 3, diskIncarnation: 1 });
    assertAtRest(world);
  });

  it('holds the room of guest and volumes on both hosts until it has ended', () => {
    const world = new World();
    world.migrate();
    const onTarget = [...world.cache.allocationsOnHost('b')].map(({ value }) => Object.values(value.amounts)[0]);
    expect(onTarget).toEqual([{ VCPU: 1, MEMORY_MB: 512, DISK_GB: 2 }]); // 0 of its own, as it takes the size of its image
    expect([...world.cache.allocationsOnHost('a')]).toHaveLength(2);
  });

  it('stays where it is when it is cancelled, and may be tried again', () => {
    for (const rounds of [0, 1, 2, 3]) {
      const world = new World();
      world.migrate();
      for (let i = 0; i < rounds; i++)
        for (const host of ['b', 'a']) {
          world.read(host);
          world.act(host);
          world.report(host);
          if (i + 1 < rounds) world.decide();
        }
      if (world.step === 'Finishing' || world.step === 'Done') continue;
      world.cancel();
      world.settle();
      expect(world.instance.status).toMatchObject({ host: 'a', incarnation: 1, migration: { step: 'Cancelled' } });
      expect(world.host('b').received.size).toBe(0);
      world.migrate();
      expect(world.instance.status.migration?.incarnation).toBe(3); // 2 is not used again
      world.settle();
      expect(world.instance.status).toMatchObject({ host: 'b', incarnation: 3 });
    }
  });

  it('fails when its target says so, and the guest runs on where it was', () => {
    const world = new World();
    world.migrate();
    world.read('b');
    const { id } = world.instance.status.migration ?? { id: '' };
    const incoming = { id, state: 'failed' as const, bytes: 0, message: 'no room is left' };
    const guest = testGuest({ state: 'preparing', ready: false, incoming });
    const report = { instanceId: world.id, incarnation: 2, sequence: 1, observedGeneration: 1, guest };
    commitPlan(world.cache, applyReport(world.cache, { host: 'b', epoch: 1, report }, world.ctx()).plan);
    world.settle();
    expect(world.instance.status.migration).toMatchObject({ step: 'Failed', message: 'no room is left' });
    expect(world.running()).toEqual(['a']);
    expect([...world.cache.allocationsOnHost('b')]).toEqual([]);
  });

  it('refuses what would change the files that are copied', () => {
    const world = new World();
    world.migrate();
    const grown = { ...names, name: 'data', labels: {}, spec: { sizeGiB: 3, snapshots: [] } };
    expect(() => replaceVolume(world.cache, grown, world.ctx())).toThrow(/moves to another host/);
    const { volumes: _, ...spec } = world.instance.spec;
    expect(() => replaceInstance(world.cache, { ...names, labels: {}, spec }, world.ctx())).toThrow(
      /attached or detached/,
    );
  });

  it('of an instance that is deleted leaves nothing anywhere', () => {
    const world = new World();
    world.migrate();
    commitPlan(world.cache, deleteInstance(world.cache, names, world.ctx()).plan);
    for (let round = 0; round < 10; round++)
      for (const host of ['a', 'b']) {
        world.read(host);
        world.act(host);
        world.report(host);
        world.decide();
      }
    expect(world.running()).toEqual([]);
    expect([...world.cache.list('instance')]).toEqual([]);
  });

  it('never has two copies, and loses none, whatever happens in which order', () => {
    for (let seed = 1; seed <= 60; seed++) {
      const world = new World();
      const prng = seededPrng(seed);
      for (let i = 0; i < 60; i++) {
        step(world, prng);
        assertSound(world);
        world.nowMs += 1000;
      }
      world.settle();
      assertAtRest(world);
    }
  });
});

/** An agent or a control plane that does nothing for a while is one that has crashed. */
function step(world: World, prng: Prng): void {
  const host = prng.chance(1, 2) ? 'a' : 'b';
  const acts = [
    () => world.read(host),
    () => world.act(host),
    () => world.report(host),
    () => world.decide(),
    () => {
      if (showMigration(world.cache, names, {}).obstacles.length === 0) world.migrate();
    },
    () => {
      if (prng.chance(1, 5) && (world.step === 'Preparing' || world.step === 'Copying')) world.cancel();
    },
  ];
  acts[prng.below(acts.length)]?.();
}

describe('the plan of a move', () => {
  it('lists all obstacles at once', () => {
    const world = new World({ gpus: { count: 1 }, powerState: 'suspended' });
    const { obstacles, to } = showMigration(world.cache, names, { to: 'nowhere' });
    expect(to).toBeUndefined();
    expect(obstacles.map(({ code }) => code)).toEqual(['Suspended', 'HostDevice', 'NoSuchHost']);
    expect(() => beginMigration(world.cache, { ...names, options: { to: 'nowhere' } }, world.ctx())).toThrow(
      /cannot move: .*suspended.*device of its host.*no host "nowhere"/,
    );
  });

  it('names the host where it is as no target', () => {
    expect(showMigration(new World().cache, names, { to: 'a' }).obstacles).toMatchObject([{ code: 'SameHost' }]);
  });

  it('is refused when it is another by now', () => {
    const world = new World();
    const { hash } = showMigration(world.cache, names, {});
    world.migrate();
    world.settle();
    expect(() => beginMigration(world.cache, { ...names, options: {}, hash }, world.ctx())).toThrow(
      /no longer as it was/,
    );
  });
});
