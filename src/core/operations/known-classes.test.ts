import { expect, it } from 'vitest';
import type { HostSpec } from '../../api/resources/host.ts';
import type { ProjectSpec } from '../../api/resources/project.ts';
import { testCache, testContext } from '../testing.ts';
import { createHost } from './host.ts';
import { createPlainResource } from './plain-resource.ts';

const createProject = (spec: Partial<ProjectSpec>) => {
  const input = { project: '', name: 'ci', labels: {}, spec: { description: '', weight: 1, ...spec } };
  return createPlainResource(testCache([]), 'project', input, testContext());
};
const describeHost = (spec: Partial<HostSpec>) => {
  const input = { project: '', name: 'h1', labels: {}, spec: { paused: false, allocationRatios: {}, ...spec } };
  return createHost(testCache([]), input, testContext());
};

it.each<[string, Partial<ProjectSpec>, string]>([
  ['a quota', { quota: { CPU: 6 } }, 'did you mean "VCPU"'],
  ['a guarantee', { guarantee: { MEMORY: 6 } }, 'did you mean "MEMORY_MB"'],
  ['a guarantee of instances', { guarantee: { INSTANCES: 6 } }, 'in quotas only'],
])('a project is refused for %s that would never count', (_what, spec, message) => {
  expect(() => createProject(spec)).toThrow(message);
});

it('a quota may be of instances and of classes of ones own', () => {
  expect(createProject({ quota: { VCPU: 1, INSTANCES: 6, CUSTOM_LICENSE: 2 } }).changed).toBe(true);
});

it.each<[string, Partial<HostSpec>, string]>([
  ['a ratio', { allocationRatios: { CPU: 3 } }, 'spec.allocationRatios.CPU'],
  ['a reserve', { reserved: { RAM: 3 } }, 'spec.reserved.RAM'],
  ['a total', { inventory: { DISK: { total: 3 } } }, 'spec.inventory.DISK'],
  ['a device', { providers: [{ name: 'gpu0', amounts: { GPU: 1 }, traits: [] }] }, 'spec.providers[0].amounts.GPU'],
])('a host is refused for %s that would never count', (_what, spec, field) => {
  expect(() => describeHost(spec)).toThrow(expect.objectContaining({ code: 'InvalidRequest', field }));
});
