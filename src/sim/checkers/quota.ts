// Not one of the numbered invariants: no commit that makes an instance leaves its project with more than its quota, for any number of creates at
// once on any number of control planes. A quota that is lowered below the use only refuses what comes.

import type { Checker, Facts } from './checker.ts';

export function quotaChecker({ state }: Facts): Checker {
  return {
    invariant: 0,
    overRestore: 'after',
    onCommit({ events }) {
      for (const { before, after } of events) {
        if (after?.kind !== 'instance') continue;
        if (before?.kind === 'instance' && before.metadata.id === after.metadata.id) continue;
        const { project } = after.metadata;
        const max = state.get('project', `projects/${project}`)?.spec.quota?.['INSTANCES'];
        if (max === undefined) continue;
        let count = 0;
        for (const { metadata } of state.list('instance')) if (metadata.project === project) count += 1;
        if (count > max) return `project ${project} has ${count} instances, ${max} are its quota`;
      }
      return undefined;
    },
  };
}
