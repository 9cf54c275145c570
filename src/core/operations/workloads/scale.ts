// Another number of copies, and which of them go then.

import type { ScalePlan } from '../../../api/routes/workloads.ts';
import { ApiError } from '../../../api/errors.ts';
import type { Workload } from '../../../api/resources/workload.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { nameOf } from '../../workloads/copy.ts';
import { passOf } from '../../workloads/pass.ts';
import { presentCopiesOf } from '../../workloads/template.ts';
import type { Decision } from '../decision.ts';
import { existing } from '../replace.ts';
import { replaceWorkload } from './workload.ts';

interface ScaleInput {
  readonly project: string;
  readonly name: string;
  readonly replicas: number;
}

export function scaleWorkload(snapshot: Snapshot, { project, name, replicas }: ScaleInput, ctx: Context): Decision {
  const { metadata, spec } = existing(snapshot, 'workload', keys.workload(project, name)).value;
  if (spec.perHost)
    throw new ApiError(
      'Conflict',
      `workload "${name}" has one copy on each host that matches; its number cannot be set`,
    );
  return replaceWorkload(snapshot, { project, name, labels: metadata.labels, spec: { ...spec, replicas } }, ctx);
}

/** What the controller would do next. During an update, the update decides as well. */
export function scalePlanOf(
  snapshot: Snapshot,
  workload: Workload,
  replicas: number,
  nowMs: number,
): Omit<ScalePlan, 'applied'> {
  const { spec, status } = workload;
  const copies = presentCopiesOf(snapshot, workload);
  const pass = passOf({
    ...{ copies, wanted: replicas, revision: status.revision, strategy: spec.strategy, paused: spec.paused, nowMs },
    notBeforeMs: () => undefined,
  });
  return {
    replicas,
    create: pass.create.length,
    remove: pass.remove.map(nameOf),
  };
}
