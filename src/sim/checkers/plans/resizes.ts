// Resizes: at rest none is under way.

import type { Checker, Facts } from '../checker.ts';

export function resizesChecker({ state, dead, excused }: Facts): Checker {
  return {
    invariant: 0,
    *unrest() {
      for (const { metadata, status, spec } of state.list('instance')) {
        const { host = '', resize } = status;
        if (!resize?.pending || metadata.deletionRequestedAtMs !== undefined) continue;
        if (dead.has(host) || excused.host(host) || excused.instance(metadata.id)) continue;
        // A host does it before the next start.
        if (status.phase === 'Failed' || status.phase === 'Exited' || spec.powerState === 'suspended') continue;
        yield `the resize of ${metadata.name} on ${host} is still pending (${status.phase})`;
      }
    },
  };
}
