// The totals must always agree with a look at everything.

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { keys } from '../state/keys.ts';
import { commitPlan, testCache, testInstance } from '../testing.ts';
import { projectTotals } from './project-totals.ts';

const change = fc.record({
  name: fc.constantFrom('x', 'y', 'z'),
  project: fc.constantFrom('a', 'b'),
  cpus: fc.constantFrom(0.1, 0.2, 1, 8),
  phase: fc.constantFrom('Pending' as const, 'Running' as const),
  removes: fc.boolean(),
});

it('are those of all instances, whatever was created, changed and deleted', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 20 }), fc.nat({ max: 20 }), (changes, madeAt) => {
      const cache = testCache([]);
      for (const [i, { name, project, cpus, phase, removes }] of changes.entries()) {
        if (i === madeAt) projectTotals(cache);
        const key = keys.instance(project, name);
        const before = cache.get('instance', key);
        if (removes && before === undefined) continue;
        const one = testInstance(name);
        const metadata = { ...one.metadata, project };
        const status = { ...one.status, phase, assigned: { VCPU: cpus, MEMORY_MB: 64 } };
        const value = removes ? null : { ...one, metadata, status };
        commitPlan(cache, { changes: [{ key, ifRevision: before?.revision ?? 0, value }] });
      }
      const expected = new Map<string, { instances: number; running: number; memoryMiB: number; cpus: number }>();
      for (const { value } of cache.list('instance')) {
        const { project } = value.metadata;
        const sums = expected.get(project) ?? { instances: 0, running: 0, memoryMiB: 0, cpus: 0 };
        expected.set(project, {
          instances: sums.instances + 1,
          running: sums.running + Number(value.status.phase === 'Running'),
          memoryMiB: sums.memoryMiB + 64,
          cpus: sums.cpus + (value.status.assigned?.['VCPU'] ?? 0),
        });
      }
      const found = [...projectTotals(cache)];
      expect(found.map(({ project }) => project).sort()).toEqual([...expected.keys()].sort());
      for (const { project, instances, running, memoryMiB, cpus } of found) {
        const { cpus: _cpus, ...rest } = expected.get(project) ?? { cpus: 0 };
        expect({ instances, running, memoryMiB }).toEqual(rest);
        expect(cpus).toBeCloseTo(expected.get(project)?.cpus ?? -1, 3);
      }
    }),
  );
});
