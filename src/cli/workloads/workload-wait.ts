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
function available(name: string, revision: number): Judge<'workload', Workload> {
  return (workload) => {
    if (!workload) return { failed: `workload "${name}" was removed` };
    const { status, metadata } = workload;
    const [condition] = status.conditions;
    const said = condition?.message ?? '';
    if (status.revision !== revision && status.reverting)
      return { failed: `workload "${name}": revision ${revision} failed and is reverted` };
    if (condition?.reason === 'Stalled' || metadata.deletionRequestedAtMs !== undefined)
      return { failed: `workload "${name}": ${said}` };
    const isDone = condition?.status === 'True' && status.stableRevision === status.revision;
    return isDone && status.revision >= revision ? { done: workload } : { waiting: said };
  };
}
