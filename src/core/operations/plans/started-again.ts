// Instances that a drain has stopped on a host start again after the maintenance of the host, unless their user has changed them since.

import { ApiError } from '../../../api/errors.ts';
import type { HostDrain } from '../../../api/plans/host-plan.ts';
import { replaceInstance } from '../instance.ts';
import type { Context } from '../../state/context.ts';
import type { Change } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';

export function startedAgain(snapshot: Snapshot, { host, guests }: HostDrain, ctx: Context): Change[] {
  return guests.flatMap(({ kind, id, action, progress, generation }) => {
    const instance = kind === 'instance' ? snapshot.instanceById(id)?.value : undefined;
    if (instance === undefined || action !== 'stop' || progress !== 'done') return [];
    const { metadata, spec, status } = instance;
    const isAsLeft = metadata.generation === generation + 1 && spec.powerState === 'stopped' && status.host === host;
    // A stopped copy of a workload is replaced.
    if (!isAsLeft || status.workload !== undefined) return [];
    const { project, name, labels } = metadata;
    try {
      const started = { project, name, labels, spec: { ...spec, powerState: 'running' as const } };
      return [...replaceInstance(snapshot, started, ctx).plan.changes];
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return []; // it is being deleted, or moves: its user has other plans
    }
  });
}
