// The index must always agree with a look at everything.

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { commitPlan, testCache, testInstance } from '../../testing.ts';
import { committedByProject } from './committed-by-project.ts';
import { keys } from '../keys.ts';

const change = fc.record({
  project: fc.constantFrom('a', 'b', 'a-b'),
  name: fc.constantFrom('x', 'y', 'z'),
  removes: fc.boolean(),
});

it('has the same as all of the kind, whatever was created and deleted, before and after it was made', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), fc.nat({ max: 30 }), (changes, madeAt) => {
      const cache = testCache([]);
      for (const [i, { project, name, removes }] of changes.entries()) {
        if (i === madeAt) committedByProject(cache).projects('instance');
        const key = keys.instance(project, name);
        const revision = cache.get('instance', key)?.revision;
        if (removes && revision === undefined) continue;
        const { metadata, ...rest } = testInstance(name);
        const value = removes ? null : { ...rest, metadata: { ...metadata, name, project } };
        commitPlan(cache, { changes: [{ key, ifRevision: revision ?? 0, value }] });
      }
      const index = committedByProject(cache);
      const all = [...cache.listCommitted('instance')].map(({ key }) => key).sort();
      const found = [...index.projects('instance')].flatMap((project) =>
        [...index.list('instance', project)].map(({ key }) => key),
      );
      expect(found.sort()).toEqual(all);
      for (const project of index.projects('instance'))
        for (const { value } of index.list('instance', project)) expect(value.metadata.project).toBe(project);
    }),
  );
});
