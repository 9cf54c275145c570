// Parts of CPUs, from the containers of an instance to the ledger.

import { describe, expect, it } from 'vitest';
import { parse } from '../../api/parse.ts';
import { InstanceSpec } from '../../api/resources/instance.ts';
import { placement } from '../controllers/placement.ts';
import { assignmentOf } from '../operations/assignment.ts';
import { demandOf } from '../scheduler/demand.ts';
import { commitPlan, testCache, testContext, testHost, testImage, testInstance } from '../testing.ts';
import { cpuShareOf } from './cpu-share.ts';
import { overUse } from './ledger.ts';

const shop = testImage('shop', { format: 'container', source: 'docker://docker.io/acme/shop:1' });
const specOf = (spec: object) => parse(InstanceSpec, { image: 'shop', ...spec }, 'spec');
const parts = (...cpus: number[]) => cpus.map((each, i) => ({ name: `c${i}`, cpus: each, memoryMiB: 64 }));

describe('the claim of an instance whose containers state what they use', () => {
  const [a, b] = parts(1, 1);
  const rows: [name: string, spec: object, claim: object][] = [
    ['is their sum', { containers: parts(0.25, 0.5) }, { VCPU: 0.75, MEMORY_MB: 128 }],
    ['is a multiple of 1/1024', { containers: parts(0.1) }, { VCPU: 102 / 1024, MEMORY_MB: 64 }],
    ['is whole where they come to whole ones', { containers: parts(0.1, 0.2, 0.7) }, { VCPU: 1, MEMORY_MB: 192 }],
    ['is what the instance asks for, if it does', { cpus: 2, containers: parts(0.25) }, { VCPU: 2, MEMORY_MB: 64 }],
    [
      'is of its image when one states nothing',
      { containers: [...parts(0.5), { name: 'x' }] },
      { VCPU: 1, MEMORY_MB: 512 },
    ],
    [
      'has the disk that they state',
      { containers: [{ ...a, diskGiB: 2 }, { ...b, diskGiB: 3 }, ...parts(1, 1, 1).slice(2)] },
      { VCPU: 3, MEMORY_MB: 192, DISK_GB: 5 },
    ],
  ];
  it.each(rows)('%s', (_, spec, claim) => {
    expect(demandOf(testCache([testImage(), shop]), specOf(spec)).amounts).toEqual(claim);
  });
});

it('shares fill a CPU to the last, come and go in any order, and leave nothing', () => {
  const cache = testCache([
    ...[testImage(), shop],
    ...testHost('h1', {
      capacity: { VCPU: 1, MEMORY_MB: 4096 },
      spec: { allocationRatios: { VCPU: 1 } },
      status: { drivers: [{ name: 'container', available: true }] },
    }),
  ]);
  const used = (): number => cache.usedBy('host_000000000000000000000000h1').get('VCPU') ?? 0;
  const wanted = [0.1, 0.3, 0.25, 0.1, 0.15, 0.1, 0.5];
  for (const [i, cpus] of wanted.entries()) {
    const key = `instances/default/c${i}`;
    const instance = testInstance(`c${i}`, specOf({ containers: parts(cpus) }));
    commitPlan(cache, { changes: [{ key, ifRevision: 0, value: instance }] });
    commitPlan(cache, placement.reconcile(cache, key, testContext()));
  }
  const hosts = [...cache.list('instance')].map(({ value }) => value.status.host);
  expect(hosts).toEqual([...wanted.slice(1).map(() => 'h1'), undefined]);
  expect(used()).toBe(wanted.slice(0, -1).reduce((sum, cpus) => sum + cpuShareOf(cpus), 0));
  expect(overUse(cache)).toEqual([]);
  const [first] = cache.list('allocation');
  const owner = cache.get('instance', 'instances/default/c0');
  expect(assignmentOf(first ?? expect.unreachable(), owner, (name) => cache.imageByName(name)?.value)).toMatchObject({
    cpus: 1,
    containers: [{ cpus: 0.1 }],
  });
  for (const { key, revision } of [...cache.list('allocation')].toReversed())
    commitPlan(cache, { changes: [{ key, ifRevision: revision, value: null }] });
  expect(used()).toBe(0);
});
