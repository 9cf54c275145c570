// What an agent may claim of its host.

import { describe, expect, it } from 'vitest';
import type { Registration } from '../../api/agent-protocol.ts';
import type { Pool } from '../../api/resources/pool.ts';
import { inventory } from '../controllers/hosts/inventory.ts';
import { conditionOf } from '../state/conditions.ts';
import { keys } from '../state/keys.ts';
import { commitPlan, testAgentId, testCache, testContext, testImage } from '../testing.ts';
import { assertPlausible, boundedClaims } from './host-claims.ts';
import { createHost, registerHost } from './host.ts';
import { replacePlainResource } from './plain-resource.ts';

const registration: Registration = {
  session: 'session-1',
  machineId: 'machine-1',
  agentId: testAgentId,
  bootId: 'boot-1',
  architecture: 'amd64',
  capacity: { VCPU: 64, MEMORY_MB: 8_192, DISK_GB: 100 },
  reserved: {},
  labels: {},
  drivers: [{ name: 'fake', available: true }],
  images: [],
  agentVersion: '1',
};

describe('a claim that no machine can have', () => {
  it.each([
    ['VCPU', 2 ** 31],
    ['VCPU', 8_193],
    ['MEMORY_MB', 2 ** 32 + 1],
    ['DISK_GB', 2 ** 30 + 1],
  ])('is refused, with its field: %s %d', (resourceClass, amount) => {
    const capacity = { ...registration.capacity, [resourceClass]: amount };
    expect(() =>
      registerHost(testCache([]), { name: 'h1', registration: { ...registration, capacity } }, testContext()),
    ).toThrow(expect.objectContaining({ code: 'InvalidRequest', field: `capacity.${resourceClass}` }));
  });

  it('is not what the largest machines have', () => {
    expect(() =>
      assertPlausible({ capacity: { VCPU: 8_192, MEMORY_MB: 2 ** 32, DISK_GB: 2 ** 30, CUSTOM_X: 2 ** 40 } }),
    ).not.toThrow();
  });
});

it.each([
  ['without limits', undefined, { VCPU: 64, GPU: 3 }, [2, 1]],
  ['below them', { VCPU: 128 }, { VCPU: 64, GPU: 3 }, [2, 1]],
  ['above one', { VCPU: 16 }, { VCPU: 16, GPU: 3 }, [2, 1]],
  ['in parts', { GPU: 2 }, { VCPU: 64, GPU: 2 }, [2, 0]],
])('claims %s', (_what, limits, capacity, parts) => {
  const part = (name: string, GPU: number) => ({ name, amounts: { GPU }, traits: [] });
  const claims = { capacity: { VCPU: 64, GPU: 3 }, providers: [part('a', 2), part('b', 1)] };
  const bounded = boundedClaims(claims, limits);
  expect(bounded.capacity).toEqual(capacity);
  expect(bounded.providers?.map(({ amounts }) => amounts['GPU'])).toEqual(parts);
});

it('counts no more than the pool permits, says so, and follows the pool', () => {
  const { metadata } = testImage('edge');
  const pool: Pool = { kind: 'pool', schemaVersion: 1, metadata, spec: { description: '' }, status: {} };
  const cache = testCache([pool]);
  const ctx = testContext();
  const spec = { paused: false, allocationRatios: {}, pool: 'edge' };
  commitPlan(cache, createHost(cache, { name: 'h1', project: '', labels: {}, spec }, ctx).plan);
  commitPlan(cache, registerHost(cache, { name: 'h1', registration }, ctx).plan);
  const seen = () => {
    const host = cache.get('host', keys.host('h1'))?.value;
    const condition = conditionOf(host?.status.conditions ?? [], 'WithinLimits');
    return [cache.providersOfHost('h1')[0]?.value.inventories['VCPU']?.total, condition?.status];
  };
  const limit = (hostLimits?: Record<string, number>): void => {
    const before = cache.get('pool', keys.pool('edge'))?.value ?? null;
    const limited = { description: '', ...(hostLimits === undefined ? {} : { hostLimits }) };
    const input = { project: '', name: 'edge', labels: {}, spec: limited };
    commitPlan(cache, replacePlainResource(cache, 'pool', input).plan);
    const after = cache.get('pool', keys.pool('edge'))?.value ?? null;
    for (const key of inventory.wakes({ key: keys.pool('edge'), kind: 'pool', before, after }, cache))
      commitPlan(cache, inventory.reconcile(cache, key, ctx));
  };
  expect(seen()).toEqual([64, undefined]);
  limit({ VCPU: 16 });
  expect(seen()).toEqual([16, 'False']);
  limit();
  expect(seen()).toEqual([64, 'True']);
});
