import { describe, expect, it } from 'vitest';
import type { Registration } from '../../api/agent-protocol.ts';
import type { HostSpec } from '../../api/resources/host.ts';
import { placement } from '../controllers/placement.ts';
import { powerOn } from '../controllers/power-on.ts';
import { overUse, releaseAllButDisk } from '../ledger/ledger.ts';
import { requestOf } from '../scheduler/request.ts';
import { schedule } from '../scheduler/schedule.ts';
import type { Provider } from '../state/records.ts';
import { addRecord, commitPlan, testAgentId, testCache, testContext, testImage, testInstance } from '../testing.ts';
import { announceControlPlane } from './servers/control-plane.ts';
import { createHost, deleteHost, registerHost, replaceHost } from './host.ts';

const base: Registration = {
  session: 'session-1',
  machineId: 'machine-1',
  agentId: testAgentId,
  bootId: 'boot',
  architecture: 'amd64',
  capacity: { VCPU: 8, MEMORY_MB: 8000, DISK_GB: 100 },
  reserved: { MEMORY_MB: 800 },
  labels: {},
  drivers: [{ name: 'fake', available: true }],
  images: [],
  agentVersion: '1',
};
const gpu = (name: string, model = 'A100') => ({
  name,
  amounts: { CUSTOM_GPU_MILLI: 1000 },
  traits: [`CUSTOM_GPU_${model}`],
});

function fleet() {
  const ctx = testContext();
  const cache = testCache([testImage()]);
  let session = 0;
  const spec = (changes: Partial<HostSpec>): HostSpec => ({ paused: false, allocationRatios: {}, ...changes });
  return {
    cache,
    ctx,
    register: (changes: Partial<Registration> = {}) =>
      commitPlan(
        cache,
        registerHost(cache, { name: 'h1', registration: { ...base, ...changes, session: `session-${++session}` } }, ctx)
          .plan,
      ),
    create: (changes: Partial<HostSpec>) =>
      commitPlan(cache, createHost(cache, { name: 'h1', project: '', labels: {}, spec: spec(changes) }, ctx).plan),
    replace: (changes: Partial<HostSpec>) =>
      commitPlan(cache, replaceHost(cache, { name: 'h1', project: '', labels: {}, spec: spec(changes) }, ctx).plan),
    providers: () => {
      const all = cache.providersOfHost('h1').map(({ value }) => value);
      const root = all.find(({ parent }) => parent === null);
      return Object.fromEntries(
        all.map((provider): [string, Provider] => [
          provider.parent === null ? '' : provider.id.slice((root?.id.length ?? 0) + 1),
          provider,
        ]),
      );
    },
  };
}

const totals = (provider: Provider | undefined) =>
  Object.fromEntries(
    Object.entries(provider?.inventories ?? {}).map(([name, { total, reserved }]) => [name, [total, reserved]]),
  );

describe('devices and cells of a host', () => {
  it('have providers of their own, from the agent and the operator, and go with the host', () => {
    const { cache, ctx, create, register, providers } = fleet();
    create({ providers: [gpu('gpu1', 'T4')] });
    register({ providers: [gpu('gpu0'), gpu('gpu1')] });
    expect(Object.keys(providers()).sort()).toEqual(['', 'gpu0', 'gpu1']);
    expect(providers()['gpu0']?.traits).toEqual(['CUSTOM_GPU_A100']);
    expect(providers()['gpu1']?.traits).toEqual(['CUSTOM_GPU_T4']); // the operator's value wins
    expect(totals(providers()[''])).toEqual({ VCPU: [8, 0], MEMORY_MB: [8000, 800], DISK_GB: [100, 0] });
    commitPlan(cache, deleteHost(cache, { name: 'h1', force: false }, ctx).plan);
    expect([...cache.list('provider')]).toEqual([]);
  });

  it('have their part of the capacity, and of what is kept back', () => {
    const { register, providers } = fleet();
    const cell = (name: string, memory: number) => ({ name, amounts: { VCPU: 4, MEMORY_MB: memory }, traits: [] });
    register({ providers: [cell('cell0', 6000), cell('cell1', 2000)] });
    expect(totals(providers()[''])).toEqual({ DISK_GB: [100, 0] });
    expect(totals(providers()['cell0'])).toEqual({ VCPU: [4, 0], MEMORY_MB: [6000, 600] });
    expect(totals(providers()['cell1'])).toEqual({ VCPU: [4, 0], MEMORY_MB: [2000, 200] });
  });

  it('that are gone are out of the ledger, but not before who holds them has let go', () => {
    const { cache, ctx, register, providers } = fleet();
    register({ providers: [gpu('gpu0'), gpu('gpu1')] });
    addRecord(cache, testInstance('web', { gpus: { count: 1 } }));
    commitPlan(cache, placement.reconcile(cache, 'instances/default/web', ctx));
    expect(cache.get('instance', 'instances/default/web')?.value.status.assigned).toEqual({
      VCPU: 1,
      MEMORY_MB: 512,
      CUSTOM_GPU_MILLI: 1000,
    });
    register({});
    expect(totals(providers()['gpu0'])).toEqual({ CUSTOM_GPU_MILLI: [0, 0] });
    expect(providers()['gpu1']).toBeUndefined();
    expect(overUse(cache)).toHaveLength(1);
  });

  it('are given back by who stands still, and claimed again when it runs on', () => {
    const { cache, ctx, register } = fleet();
    register({ providers: [gpu('gpu0')] });
    const key = 'instances/default/web';
    addRecord(cache, testInstance('web', { diskGiB: 5, gpus: { count: 1 } }));
    commitPlan(cache, placement.reconcile(cache, key, ctx));
    const held = () => [...cache.list('allocation')].map(({ value }) => Object.values(value.amounts));
    const running = held();
    expect(running).toEqual([expect.arrayContaining([{ CUSTOM_GPU_MILLI: 1000 }])]);
    for (const allocation of cache.list('allocation')) commitPlan(cache, { changes: releaseAllButDisk(allocation) });
    expect(held()).toEqual([expect.not.arrayContaining([{ CUSTOM_GPU_MILLI: 1000 }])]);
    const stopped = cache.get('instance', key)?.value;
    if (!stopped) throw new Error('no instance');
    addRecord(cache, { ...stopped, status: { ...stopped.status, phase: 'Stopped' } });
    commitPlan(cache, powerOn.reconcile(cache, key, ctx));
    expect(held()).toEqual(running);
  });

  it('are given whole, in shares and by model', () => {
    const { cache, register } = fleet();
    register({ providers: [gpu('gpu0'), gpu('gpu1', 'T4')] });
    const held = (gpus: { count: number; share?: number; models?: string[] }) => {
      const answer = schedule(cache, requestOf(cache, testInstance('web', { gpus })));
      if (!answer.placed) return answer.refusals.map(({ reason }) => reason);
      return Object.keys(answer.held)
        .map((id) => id.replace(/^host_\w+-?/, ''))
        .filter((name) => name !== '')
        .sort();
    };
    expect(held({ count: 2 })).toEqual(['gpu0', 'gpu1']);
    expect(held({ count: 3 })).toEqual(['InsufficientGpu']);
    expect(held({ count: 1, share: 300, models: ['T4'] })).toEqual(['gpu1']);
    expect(held({ count: 1, models: ['H100', 'a100'] })).toEqual(['gpu0']);
    expect(held({ count: 1, models: ['H100'] })).toEqual(['InsufficientGpu']);
  });

  it('cells give CPUs and memory in equal parts, each from another', () => {
    const { cache, register } = fleet();
    const cell = (name: string) => ({ name, amounts: { VCPU: 4, MEMORY_MB: 4000 }, traits: [] });
    register({ reserved: {}, providers: [cell('cell0'), cell('cell1')] });
    const answer = (spec: object) =>
      schedule(cache, requestOf(cache, testInstance('web', { memoryMiB: 4000, ...spec })));
    expect(answer({ cpus: 8 }).placed).toBe(false);
    const placed = answer({ cpus: 8, numaCells: 2 });
    expect(placed.placed && Object.values(placed.held)).toEqual([
      { VCPU: 4, MEMORY_MB: 2000 },
      { VCPU: 4, MEMORY_MB: 2000 },
    ]);
    expect(answer({ cpus: 3, memoryMiB: 3000, numaCells: 3 }).placed).toBe(false);
  });
});

describe("the operator's say", () => {
  it('is total, reserve, units and ratio of each class', () => {
    const { create, register, providers } = fleet();
    create({
      allocationRatios: { VCPU: 2 },
      inventory: {
        MEMORY_MB: { reservedPercent: 25, minUnit: 256, maxUnit: 4096, stepSize: 256 },
        CUSTOM_LICENCE: { total: 3 },
        DISK_GB: { total: 50 },
      },
    });
    register();
    expect(providers()['']?.inventories).toEqual({
      VCPU: { total: 8, reserved: 0, minUnit: 1, maxUnit: 8, stepSize: 1, allocationRatio: 2 },
      MEMORY_MB: { total: 8000, reserved: 2000, minUnit: 256, maxUnit: 4096, stepSize: 256, allocationRatio: 1 },
      DISK_GB: { total: 50, reserved: 0, minUnit: 1, maxUnit: 50, stepSize: 1, allocationRatio: 1 },
      CUSTOM_LICENCE: { total: 3, reserved: 0, minUnit: 1, maxUnit: 3, stepSize: 1, allocationRatio: 1 },
    });
  });

  it('that cannot be is refused, naming the field', () => {
    const { create } = fleet();
    const refused = (changes: Partial<HostSpec>, field: string) => {
      expect(() => create(changes)).toThrow(expect.objectContaining({ code: 'InvalidRequest', field }));
    };
    refused({ inventory: { VCPU: { minUnit: 4, maxUnit: 2 } } }, 'spec.inventory.VCPU.minUnit');
    refused({ inventory: { VCPU: { minUnit: 3, maxUnit: 5, stepSize: 7 } } }, 'spec.inventory.VCPU.stepSize');
    refused({ providers: [gpu('a'), gpu('a')] }, 'spec.providers[1]');
    const taint = { key: 'a', effect: 'NoSchedule' as const };
    refused({ taints: [taint, taint] }, 'spec.taints[1]');
  });
});

describe('traits of a host', () => {
  it("are its agent's and its operator's; what was set elsewhere stays", () => {
    const { cache, register, replace, providers } = fleet();
    register({ traits: ['HW_A'] });
    const root = providers()[''];
    if (!root) throw new Error('no root');
    addRecord(cache, { ...root, traits: [...root.traits, 'CUSTOM_ELSEWHERE'] });
    replace({ traits: ['CUSTOM_B'] });
    expect(providers()['']?.traits).toEqual(['CUSTOM_B', 'CUSTOM_ELSEWHERE', 'HW_A']);
    register({ traits: [] });
    expect(providers()['']?.traits).toEqual(['CUSTOM_B', 'CUSTOM_ELSEWHERE']);
    replace({});
    expect(providers()['']?.traits).toEqual(['CUSTOM_ELSEWHERE']);
  });
});

describe('the host of a control plane', () => {
  it('is marked when the control plane starts, or when it registers itself', () => {
    for (const order of ['host first', 'control plane first']) {
      const { cache, ctx, register, providers } = fleet();
      if (order === 'host first') register();
      const announcement = { machineId: 'machine-1', excludeHosts: true };
      commitPlan(cache, announceControlPlane(cache, announcement, ctx).plan);
      if (order !== 'host first') register();
      expect(cache.get('host', 'hosts/h1')?.value.status.controlPlane).toBe('excluded');
      expect(providers()['']?.traits).toEqual(['CUSTOM_CONTROL_PLANE']);
      const answer = schedule(cache, requestOf(cache, testInstance('web')));
      expect(answer.placed ? [] : answer.refusals).toEqual([{ reason: 'ControlPlaneHost', hosts: 1 }]);
      expect(announceControlPlane(cache, announcement, ctx).plan.changes).toEqual([]);
      commitPlan(cache, announceControlPlane(cache, { ...announcement, excludeHosts: false }, ctx).plan);
      expect(schedule(cache, requestOf(cache, testInstance('web'))).placed).toBe(true);
    }
  });
});
