// Another number of copies, and which of them go then.

import type { ScalePlan } from '../../../api/routes/workloads.ts';
import { ApiError } from '../../../api/errors.ts';
import type { Workload } from '../../../api/resources/workload.ts';
import { assertWorkloadPlan, someNames, workloadPlanHash } from '../../plans/workload-hash.ts';
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
  /** The hash of the plan that the user has seen; absent: whatever the plan is. */
  readonly apply?: string;
}

/** Throws `Conflict` when `apply` is the hash of another plan. A workload that has this number is left as it is. */
export function scaleWorkload(
  snapshot: Snapshot,
  { project, name, replicas, apply }: ScaleInput,
  ctx: Context,
): Decision & { readonly shown: Omit<ScalePlan, 'applied'> } {
  const { value } = existing(snapshot, 'workload', keys.workload(project, name));
  const { metadata, spec } = value;
  assertNumbered(value);
  const shown = scalePlanOf(snapshot, value, replicas, ctx.nowMs);
  // A repeated request finds its own change, which has another hash.
  if (apply !== undefined && spec.replicas !== replicas)
    assertWorkloadPlan(apply, { verb: 'scale', workload: value, hash: shown.hash, copiesText: copiesText(shown) });
  const input = { project, name, labels: metadata.labels, spec: { ...spec, replicas } };
  return { ...replaceWorkload(snapshot, input, ctx), shown };
}

/** Throws `Conflict` for a workload whose number of copies is that of its hosts. */
export function assertNumbered({ metadata, spec }: Workload): void {
  if (!spec.perHost) return;
  throw new ApiError(
    'Conflict',
    `workload "${metadata.name}" has one copy on each host that matches; its number cannot be set`,
  );
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
  const create = pass.create.length;
  const agreed = { create, remove: pass.remove.map(({ id }) => id) };
  return {
    before: spec.replicas,
    ...{ replicas, create, remove: pass.remove.map(nameOf) },
    hash: workloadPlanHash({ workload, request: { verb: 'scale', replicas }, copies: agreed }),
  };
}

function copiesText({ create, remove }: Pick<ScalePlan, 'create' | 'remove'>): string {
  const parts = [
    ...(create > 0 ? [`${create} created`] : []),
    ...(remove.length > 0 ? [`${someNames(remove)} removed`] : []),
  ];
  return parts.length === 0 ? 'none are created or removed' : parts.join(', ');
}
