// Waits until a workload is what was asked for, and shows on the way how far it has come.

import type { Workload } from '../../api/resources/workload.ts';
import type { Cli } from '../cli.ts';
import { CommandError, exitCodes, Interrupted } from '../exit-codes.ts';
import { follow } from '../print/follow.ts';
import { startProgress } from '../print/progress.ts';
import type { Session } from '../session.ts';

/** Throws when it fails, is reverted, or goes. */
export async function untilAvailable(
  cli: Cli,
  { client, project }: Session,
  { metadata: { id, name }, status: { revision } }: Workload,
  timeoutMs: number | undefined,
): Promise<Workload> {
  const overdue = new AbortController();
  const timer = timeoutMs === undefined ? undefined : cli.clock.setTimer(timeoutMs, () => overdue.abort());
  const progress = startProgress(cli);
  let last = '';
  try {
    const signal = AbortSignal.any([cli.interruption(), overdue.signal]);
    for await (const change of follow(cli, client, 'workload', { project }, signal)) {
      const all = change.type === 'sync' ? change.items : change.type === 'put' ? [change.resource] : [];
      const workload = all.find(({ metadata }) => metadata.id === id);
      const gone = (change.type === 'delete' && change.name === name) || (change.type === 'sync' && !workload);
      if (gone) throw new CommandError(exitCodes.badOutcome, `workload "${name}" was removed`);
      if (!workload) continue;
      const { status, metadata } = workload;
      const [condition] = status.conditions;
      last = condition?.message ?? '';
      progress.update(`${name}: ${last}`);
      if (status.revision !== revision && status.reverting)
        throw new CommandError(exitCodes.badOutcome, `workload "${name}": revision ${revision} failed and is reverted`);
      if (condition?.reason === 'Stalled' || metadata.deletionRequestedAtMs !== undefined)
        throw new CommandError(exitCodes.badOutcome, `workload "${name}": ${last}`);
      if (condition?.status === 'True' && status.stableRevision === status.revision && status.revision >= revision)
        return workload;
    }
    throw new Interrupted();
  } catch (error) {
    if (!(error instanceof Interrupted) || !overdue.signal.aborted) throw error;
    throw new CommandError(exitCodes.timedOut, `workload "${name}": ${last}`, {
      advice: `it goes on; see "berth workload status ${name}"`,
    });
  } finally {
    progress.end();
    timer?.cancel();
  }
}
