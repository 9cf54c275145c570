// A fleet for tests of drains: its hosts do at once what they are told, and time moves by hand.

import type { DrainOptions } from '../../../api/plans/host-plan.ts';
import type { Host } from '../../../api/resources/host.ts';
import type { Instance, InstanceSpec } from '../../../api/resources/instance.ts';
import type { WorkloadSpec } from '../../../api/resources/workload.ts';
import { beginDrain, showDrainPlan } from '../../operations/plans/host-drain.ts';
import { assignmentOf } from '../../operations/assignment.ts';
import { createInstance } from '../../operations/instance.ts';
import { applyReport } from '../../operations/report.ts';
import { createWorkload } from '../../operations/workloads/workload.ts';
import type { Cache } from '../../state/cache.ts';
import type { Entry } from '../../state/snapshot.ts';
import { keys } from '../../state/keys.ts';
import { commitPlan, testContext, testFleet, testGuest, testInstance, testWorkloadSpec } from '../../testing.ts';
import { drain } from './drain.ts';
import { roll } from './roll.ts';
import { restore } from './restore.ts';
import { garbage } from '../garbage.ts';
import { migration } from '../migration.ts';
import { placement } from '../placement.ts';
import { workload } from '../workloads/workload.ts';

export const options: DrainOptions = { stopOthers: false, movesMax: 2, deadlineMs: 600_000, atDeadline: 'leave' };

export class World {
  readonly cache: Cache;
  nowMs = 1_000_000;
  #sequence = 0;
  #ids = 0;

  /** `moves`: instances can move between the hosts. */
  constructor(hosts = ['a', 'b', 'c'], { moves = false } = {}) {
    const drivers = [{ name: 'fake', available: true, offers: ['migration' as const] }];
    const host = { status: { bootId: 'boot-0', ...(moves ? { drivers } : {}) } };
    this.cache = testFleet(Object.fromEntries(hosts.map((name) => [name, { ...host, labels: { host: name } }])));
  }

  ctx = () =>
    testContext({ nowMs: this.nowMs, newId: (prefix) => `${prefix}_${String(++this.#ids).padStart(26, '0')}` });

  instance(name: string, spec: Partial<InstanceSpec> = {}): void {
    const input = { project: 'default', name, labels: {}, spec: testInstance(name, spec).spec };
    commitPlan(this.cache, createInstance(this.cache, input, this.ctx()).plan);
    this.settle();
  }

  workload(spec: Partial<WorkloadSpec> = {}, name = 'web'): void {
    const input = { project: 'default', name, labels: {}, spec: testWorkloadSpec(spec) };
    commitPlan(this.cache, createWorkload(this.cache, input, this.ctx()).plan);
    this.settle();
  }

  plan(changed: Partial<DrainOptions> = {}, host = 'a') {
    const { plan, shown } = showDrainPlan(this.cache, { host, options: { ...options, ...changed } }, this.ctx());
    commitPlan(this.cache, plan);
    return shown;
  }

  apply(changed: Partial<DrainOptions> = {}, hash?: string, host = 'a'): void {
    const input = { host, options: { ...options, ...changed }, hash: hash ?? this.plan(changed, host).hash };
    commitPlan(this.cache, beginDrain(this.cache, input, this.ctx()).plan);
  }

  drain = (host = 'a') => this.cache.get('hostPlan', keys.hostPlan(host))?.value;
  instances = (): Instance[] => Array.from(this.cache.list('instance'), ({ value }) => value);
  on = (host: string): Instance[] => this.instances().filter(({ status }) => status.host === host);
  readyCount = (): number => this.instances().filter(({ status }) => status.guest?.ready === true).length;

  hostRecord(host: string): Entry<Host> {
    const entry = this.cache.get('host', keys.host(host));
    if (!entry) throw new Error(`there is no host ${host}`);
    return entry;
  }

  /** As its agent reports it after a boot of the machine, and as an operator sets it. */
  change(
    host: string,
    { spec = {}, status = {} }: { spec?: Partial<Host['spec']>; status?: Partial<Host['status']> },
  ): void {
    const { key, revision, value } = this.hostRecord(host);
    const next = { ...value, spec: { ...value.spec, ...spec }, status: { ...value.status, ...status } };
    commitPlan(this.cache, { changes: [{ key, ifRevision: revision, value: next }] });
  }

  /** Until no controller has anything to do; `watch` runs after each change. */
  settle(watch: () => void = () => {}): void {
    for (let round = 0; round < 200; round++) {
      const changed = this.#turn(watch);
      this.nowMs += 500;
      if (!changed && round > 10) return;
    }
    throw new Error('it never settles');
  }

  /** Some rounds, and not until the end. */
  turns(count: number, watch: () => void): void {
    for (let round = 0; round < count; round++) {
      this.#turn(watch);
      this.nowMs += 500;
    }
  }

  #turn(watch: () => void): boolean {
    let changed = false;
    for (const controller of [drain, restore, roll, migration, workload, placement, garbage])
      for (const key of [...controller.keys(this.cache)]) {
        const plan = controller.reconcile(this.cache, key, this.ctx());
        if (plan.changes.length === 0) continue;
        commitPlan(this.cache, plan);
        changed = true;
        watch();
      }
    changed = this.#receive() || changed;
    for (const { metadata, spec, status } of this.instances()) changed = this.#obey(metadata, spec, status) || changed;
    return changed;
  }

  /** Targets of moves receive at once, and sources have nothing left of what has gone. */
  #receive(): boolean {
    let changed = false;
    for (const allocation of [...this.cache.list('allocation')]) {
      const { host, consumer } = allocation.value;
      if (consumer.kind !== undefined) continue;
      const instance = this.cache.get('instance', keys.instance(consumer.project, consumer.name));
      const { want, instanceId, incarnation, migration: move } = assignmentOf(allocation, instance);
      const { status, metadata } = instance?.value ?? {};
      const isReceived = want === 'incoming' && status?.migration?.seen?.state !== 'received';
      const isOver = want === 'absent' && metadata?.deletionRequestedAtMs === undefined;
      if (!isReceived && !isOver) continue;
      const incoming = { id: move?.id ?? '', bytes: 0, state: 'received' as const };
      const guest = isOver ? { state: 'absent' as const } : testGuest({ state: 'preparing', incoming });
      const report = { instanceId, incarnation, sequence: ++this.#sequence, observedGeneration: 1, guest };
      commitPlan(this.cache, applyReport(this.cache, { host, epoch: 1, report }, this.ctx()).plan);
      changed = true;
    }
    return changed;
  }

  #obey(metadata: Instance['metadata'], spec: Instance['spec'], status: Instance['status']): boolean {
    if (status.host === undefined) return false;
    const gone = metadata.deletionRequestedAtMs !== undefined;
    const stopped = spec.powerState === 'stopped';
    if (!gone && status.guest?.state === (stopped ? 'stopped' : 'running')) return false;
    const guest = gone
      ? { state: 'absent' as const }
      : testGuest({ state: stopped ? 'stopped' : 'running', ready: !stopped });
    const report = {
      ...{ instanceId: metadata.id, incarnation: status.incarnation, sequence: ++this.#sequence },
      ...{ observedGeneration: metadata.generation, guest },
    };
    commitPlan(this.cache, applyReport(this.cache, { host: status.host, epoch: 1, report }, this.ctx()).plan);
    return true;
  }
}
