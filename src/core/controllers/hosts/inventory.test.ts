import { expect, it } from 'vitest';
import { registerHost, replaceHost } from '../../operations/host.ts';
import { replacePlainResource } from '../../operations/plain-resource.ts';
import type { Cache } from '../../state/cache.ts';
import { keys } from '../../state/keys.ts';
import type { RecordChange } from '../../state/snapshot.ts';
import { commitPlan, testAgentId, testCache, testContext, testImage, testInstance } from '../../testing.ts';
import type { Pool } from '../../../api/resources/pool.ts';
import { inventory } from './inventory.ts';
import { placement } from '../placement.ts';

const ctx = testContext({ policy: { cpuAllocationRatio: 4 } });
const key = keys.host('h1');

function pool(spec: Partial<Pool['spec']> = {}): Pool {
  const { metadata } = testImage('ci');
  return { kind: 'pool', schemaVersion: 1, metadata, spec: { description: '', ...spec }, status: {} };
}

function registered(): Cache {
  const cache = testCache([testImage(), pool()]);
  const registration = {
    session: 'session-1',
    machineId: 'machine-1',
    agentId: testAgentId,
    bootId: 'boot-1',
    architecture: 'amd64',
    capacity: { VCPU: 2, MEMORY_MB: 8192, DISK_GB: 100 },
    reserved: {},
    labels: {},
    drivers: [{ name: 'fake', available: true }],
    images: [],
    agentVersion: 'test',
  } as const;
  const [drivers, images] = [[...registration.drivers], [...registration.images]];
  commitPlan(cache, registerHost(cache, { name: 'h1', registration: { ...registration, drivers, images } }, ctx).plan);
  return cache;
}

function ratios(cache: Cache): (number | undefined)[] {
  const [provider] = cache.providersOfHost('h1');
  return ['VCPU', 'MEMORY_MB', 'DISK_GB'].map((each) => provider?.value.inventories[each]?.allocationRatio);
}

function setHost(cache: Cache, spec: { pool?: string; allocationRatios?: Record<string, number> }): void {
  const input = { project: '', name: 'h1', labels: {}, spec: { paused: false, allocationRatios: {}, ...spec } };
  commitPlan(cache, replaceHost(cache, input, ctx).plan);
}

function setPool(cache: Cache, spec: Partial<Pool['spec']>): void {
  const before = cache.get('pool', keys.pool('ci'))?.value ?? null;
  const input = { project: '', name: 'ci', labels: {}, spec: { description: '', ...spec } };
  commitPlan(cache, replacePlainResource(cache, 'pool', input).plan);
  const after = cache.get('pool', keys.pool('ci'))?.value ?? null;
  const change: RecordChange = { key: keys.pool('ci'), kind: 'pool', before, after };
  for (const woken of inventory.wakes(change, cache)) commitPlan(cache, inventory.reconcile(cache, woken, ctx));
}

it('gives CPUs out as the host says, else its pool, else the fleet; memory and disk once', () => {
  const cache = registered();
  expect(ratios(cache)).toEqual([4, 1, 1]);
  setHost(cache, { pool: 'ci' });
  setPool(cache, { allocationRatios: { VCPU: 8 } });
  expect(ratios(cache)).toEqual([8, 1, 1]);
  setHost(cache, { pool: 'ci', allocationRatios: { VCPU: 1, MEMORY_MB: 1.5 } });
  expect(ratios(cache)).toEqual([1, 1.5, 1]);
  setHost(cache, { pool: 'ci' });
  expect(ratios(cache)).toEqual([8, 1, 1]);
  setPool(cache, { profile: 'best-fit' });
  expect(ratios(cache)).toEqual([4, 1, 1]);
});

it('follows the ratio of the fleet when that has changed since a host registered', () => {
  const cache = registered();
  const { changes } = inventory.reconcile(cache, key, testContext({ policy: { cpuAllocationRatio: 2 } }));
  commitPlan(cache, { changes });
  expect(ratios(cache)).toEqual([2, 1, 1]);
  expect(inventory.reconcile(cache, key, testContext({ policy: { cpuAllocationRatio: 2 } })).changes).toEqual([]);
});

it('tells who waits for CPUs alone how more are given out, and nobody who asks for more than a host has', () => {
  const cache = registered();
  const why = (cpus: number): string | undefined => {
    const instance = testInstance(`web-${cpus}`, { cpus });
    const at = cache.revision + 1;
    const instanceKey = keys.instance('default', instance.metadata.name);
    cache.apply([{ key: instanceKey, value: instance, revision: at }], at);
    commitPlan(cache, placement.reconcile(cache, instanceKey, ctx));
    return cache.get('instance', instanceKey)?.value.status.conditions[0]?.message;
  };
  setHost(cache, { allocationRatios: { VCPU: 0.5 } });
  expect(why(2)).toBe(
    '0 of 1 host: 1 InsufficientCpu; "berth host set HOST --overcommit VCPU=N" or "berth pool set POOL --cpu-ratio N" gives out more CPUs',
  );
  expect(why(3)).toBe('0 of 1 host: 1 InsufficientCpu');
});
