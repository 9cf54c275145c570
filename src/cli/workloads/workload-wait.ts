// Waits until a workload is what was asked for, and shows on the way how far it has come.

import type { Workload } from '../../api/resources/workload.ts';
import type { Cli } from '../cli.ts';
import { type Judge, waitForResource } from '../instances/wait.ts';
import type { Session } from '../session.ts';

/** Throws when it fails, is reverted, or goes. */
export function untilAvailable(
  cli: Cli,
  session: Session,
  { metadata: { id, name }, status: { revision } }: Workload,
  timeoutMs: number | undefined,
): Promise<Workload> {
  const adviceAfter = (): string => `it goes on; see "berth workload status ${name}"`;
  const judge = available(name, revision);
  return waitForResource(cli, session, { kind: 'workload', id, name, timeoutMs, judge, adviceAfter });
}

/** `revision`: the one that is waited for, or a later one. */
export function available(name: string, revision: number): Judge<'workload', Workload> {
  return (workload) => {
    if (!workload) return { failed: `workload "${name}" was removed` };
    const { spec, status, metadata } = workload;
    const [condition] = status.conditions;
    const said = condition?.message ?? '';
    if (status.revision !== revision && status.reverting)
      return { failed: `workload "${name}": revision ${revision} failed and is reverted` };
    if (condition?.reason === 'Stalled' || metadata.deletionRequestedAtMs !== undefined)
      return { failed: `workload "${name}": ${said}` };
    if (spec.paused && condition?.reason === 'Updating')
      return { failed: `workload "${name}" is paused: ${said}; "berth workload resume ${name}" lets the update go on` };
    // The condition may be of the number that was wanted before. Without copies, no revision becomes stable.
    const isCounted = spec.perHost === true || status.wanted === spec.replicas;
    const isPresent = status.wanted === 0 || status.stableRevision === status.revision;
    const isDone = condition?.status === 'True' && isCounted && isPresent;
    return isDone && status.revision >= revision ? { done: workload } : { waiting: said };
  };
}
