// Hosts on one machine: what the ledger counts when they come and go.

import { expect, it } from 'vitest';
import type { Registration } from '../../../api/agent-protocol.ts';
import { inventory } from '../../controllers/hosts/inventory.ts';
import { conditionOf } from '../../state/conditions.ts';
import { keys } from '../../state/keys.ts';
import { commitPlan, testAgentId, testCache, testContext } from '../../testing.ts';
import { deleteHost, registerHost } from '../host.ts';

const registration: Registration = {
  session: 'session-1',
  machineId: 'machine-1',
  agentId: testAgentId,
  bootId: 'boot-1',
  architecture: 'amd64',
  capacity: { VCPU: 8, MEMORY_MB: 8_192, DISK_GB: 100 },
  reserved: {},
  measured: ['VCPU', 'MEMORY_MB', 'DISK_GB'],
  diskId: '1',
  labels: {},
  drivers: [{ name: 'fake', available: true }],
  images: [],
  agentVersion: '1',
};

type Changes = Partial<Pick<Registration, 'measured' | 'machineId'>>;

function fleet() {
  const cache = testCache([]);
  const ctx = testContext();
  const settle = (): void => {
    for (const key of [...inventory.keys(cache)]) commitPlan(cache, inventory.reconcile(cache, key, ctx));
  };
  const woken: string[] = [];
  cache.onChange((change) => void woken.push(...inventory.wakes(change, cache)));
  return {
    cache,
    woken,
    register(name: string, { measured, machineId }: Changes = registration): void {
      const { measured: _, ...rest } = { ...registration, ...(machineId === undefined ? {} : { machineId }) };
      const told = { ...rest, ...(measured === undefined ? {} : { measured }) };
      commitPlan(cache, registerHost(cache, { name, registration: told }, ctx).plan);
    },
    remove(name: string): void {
      commitPlan(cache, deleteHost(cache, { name, force: false }, ctx).plan);
    },
    settle,
    cpus: (name: string) => cache.providersOfHost(name)[0]?.value.inventories['VCPU']?.total,
    said: (name: string) =>
      conditionOf(cache.get('host', keys.host(name))?.value.status.conditions ?? [], 'OwnMachine'),
  };
}

it('counts the room of a machine once, and again in full when a host is alone', () => {
  const { register, remove, settle, cpus, said, woken } = fleet();
  register('a');
  expect([cpus('a'), said('a')]).toEqual([8, undefined]);
  woken.length = 0;
  register('b');
  expect(woken).toContain(keys.host('a'));
  settle();
  expect([cpus('a'), cpus('b')]).toEqual([4, 4]);
  expect(said('b')).toMatchObject({
    status: 'False',
    reason: 'MachineShared',
    message: 'shares its machine with "a", and has 4 of 8 VCPU, 4096 of 8192 MEMORY_MB, 50 of 100 DISK_GB',
  });
  woken.length = 0;
  remove('b');
  expect(woken).toContain(keys.host('a'));
  settle();
  expect([cpus('a'), said('a')?.reason]).toEqual([8, 'OnlyHost']);
});

it('leaves hosts on other machines, and agents that do not say what they measured, as they are', () => {
  const { register, settle, cpus } = fleet();
  register('a');
  register('b', { ...registration, machineId: 'machine-2' });
  register('c', {});
  settle();
  expect([cpus('a'), cpus('b')]).toEqual([8, 8]);
});

it('writes nothing when nothing changes', () => {
  const { register, settle, cache } = fleet();
  register('a');
  register('b');
  settle();
  const { revision } = cache;
  for (const key of inventory.keys(cache)) expect(inventory.reconcile(cache, key, testContext()).changes).toEqual([]);
  expect(cache.revision).toBe(revision);
});
