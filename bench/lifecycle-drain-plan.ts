// Row `drain_plan_ms`: the plan of a host with 200 copies of workloads among 1,000 hosts with 10,000 instances, with the check of N-1
// before and after. Each round decides on a fleet that has changed since the last.

import type { DrainOptions } from '../src/api/plans/host-plan.ts';
import { planHost } from '../src/core/plans/drain.ts';
import { decodeRecord, encodeRecord } from '../src/core/state/codec.ts';
import { keyOf } from '../src/core/state/keys.ts';
import type { AnyRecord } from '../src/core/state/records.ts';
import {
  addRecord,
  testCache,
  testContext,
  testGuest,
  testHost,
  testImage,
  testInstance,
  testWorkload,
} from '../src/core/testing.ts';
import { type Emit, median } from './row.ts';

const hosts = 1_000;
const instances = 10_000;
const onDrained = 200;
const workloads = 10;
const rounds = 7;
const options: DrainOptions = { stopOthers: false, movesMax: 2, deadlineMs: 3_600_000, atDeadline: 'leave' };

export function measureDrainPlan(emit: Emit): void {
  const capacity = { VCPU: 128, MEMORY_MB: 524_288, DISK_GB: 4_000 };
  const fleet = Array.from({ length: hosts }, (_, i) => testHost(`h${i}`, { capacity }));
  const cache = testCache([...fleet.flat(), testImage()]);
  const owners = Array.from({ length: workloads }, (_, w) => testWorkload(`web-${w}`, { replicas: 1_000 }));
  for (const owner of owners) addRecord(cache, owner);
  // As a server reads them: equal specs are one object, which what is kept of a spec rests on.
  const add = (record: AnyRecord): void => addRecord(cache, decodeRecord(keyOf(record), encodeRecord(record)));
  const place = (i: number, host: string): void => {
    const owner = owners[i % workloads];
    if (!owner) return;
    const workload = { name: owner.metadata.name, id: owner.metadata.id, revision: 1, ordinal: i };
    const status = { phase: 'Running', host, incarnation: 1, guest: testGuest(), readyAtMs: 0, workload } as const;
    const size = { cpus: 1 + (i % 4), memoryMiB: 512 * (1 + (i % 8)) };
    const instance = testInstance(`i-${i}`, size, status);
    add(instance);
    const provider = cache.providersOfHost(host)[0]?.value.id ?? '';
    add({
      ...{ kind: 'allocation', host, driver: 'fake' },
      consumer: { id: instance.metadata.id, project: 'default', name: `i-${i}`, incarnation: 1 },
      amounts: { [provider]: { VCPU: size.cpus, MEMORY_MB: size.memoryMiB } },
    });
  };
  for (let i = 0; i < instances; i++) place(i, i < onDrained ? 'h0' : `h${1 + (i % (hosts - 1))}`);
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    place(instances + round, `h${1 + round}`);
    const startedAt = performance.now();
    const { guests } = planHost(cache, { verb: 'drain', host: 'h0', options }, testContext());
    if (round > 0) times.push(performance.now() - startedAt); // the first builds what later ones keep
    const replaced = guests.filter(({ action, target }) => action === 'replace' && target !== undefined).length;
    if (replaced !== onDrained) throw new Error(`${replaced} of ${onDrained} instances are replaced`);
  }
  emit({
    suite: 'lifecycle',
    name: 'drain_plan_ms',
    value: median(times),
    unit: 'ms',
    better: 'lower',
    goal: 50,
    limit: 200,
  });
}
