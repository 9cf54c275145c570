// Invariant 2, as it is recorded: an exclusive instance is placed again after the loss of its host only with a proof that
// is committed no later.

import type { HostProof } from '../../api/resources/host-state.ts';
import type { Checker, Facts } from './checker.ts';

export function replacementsChecker(_: Facts): Checker {
  const proofs = new Map<string, HostProof>();
  return {
    invariant: 2,
    onCommit({ events }) {
      // Of several plans in one commit, each may rest on those before it: their proofs are as durable as they are.
      for (const { after } of events) {
        if (after?.kind !== 'host') continue;
        const { proof } = after.status.down ?? {};
        if (proof) proofs.set(after.metadata.name, proof);
        else proofs.delete(after.metadata.name);
      }
      for (const { before, after } of events) {
        if (after?.kind !== 'instance' || !after.spec.exclusive) continue;
        const { replaced } = after.status;
        const former = before?.kind === 'instance' ? before.status.replaced : undefined;
        if (!replaced || former?.incarnation === replaced.incarnation) continue;
        const { name } = after.metadata;
        if (!replaced.proof) return `exclusive ${name} replaces its copy on ${replaced.host} without a proof`;
        if (proofs.get(replaced.host)?.atMs !== replaced.proof.atMs)
          return `exclusive ${name} replaces its copy on ${replaced.host}, which has no such proof`;
        if (replaced.proof.kind === 'self-stop' && after.spec.selfStop !== true)
          return `exclusive ${name} asked for no self-stop, and that is its proof`;
      }
      return undefined;
    },
  };
}
