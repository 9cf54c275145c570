// The instances of a workload: how each is made of the template.

import { ApiError } from '../../../api/errors.ts';
import type { Workload, WorkloadSpec, WorkloadTemplate } from '../../../api/resources/workload.ts';
import { workloadLabel } from '../../../api/resources/workload.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Change } from '../../state/plan.ts';
import type { WorkloadRevision } from '../../state/records.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import type { CreateInput } from '../create.ts';
import { createInstance } from '../instance.ts';

interface NewCopy {
  readonly workload: Workload;
  readonly from: Pick<WorkloadRevision, 'template' | 'number'>;
  readonly ordinal: number;
}

/** Throws as the create of an instance does. */
export function newCopy(snapshot: Snapshot, { workload, from, ordinal }: NewCopy, ctx: Context): readonly Change[] {
  const { project, name, id } = workload.metadata;
  const { labels, spec } = from.template;
  const input = {
    project,
    name: freeCopyName(snapshot, { project, stem: `${name}-${ordinal}` }, ctx),
    labels: { ...labels, [workloadLabel]: name },
    spec: workload.spec.perHost ? { ...spec, placement: { ...spec.placement, maxPerHost: 1 } } : spec,
  };
  const { plan, key } = createInstance(snapshot, input, ctx);
  return plan.changes.map((change) => {
    const { value } = change;
    if (change.key !== key || value?.kind !== 'instance') return change;
    const owner = { name, id, revision: from.number, ordinal };
    return { ...change, value: { ...value, status: { ...value.status, workload: owner } } };
  });
}

/** A template that no instance could have is refused now, and not by each copy; quotas may have room later. */
export function assertTemplate(
  snapshot: Snapshot,
  { project, name, spec }: CreateInput<WorkloadSpec>,
  ctx: Context,
): void {
  assertInstanceTemplate(snapshot, { project, name, template: spec.template }, ctx);
}

/** The same for any template at `spec.template`. */
export function assertInstanceTemplate(
  snapshot: Snapshot,
  { project, name, template }: { readonly project: string; readonly name: string; readonly template: WorkloadTemplate },
  ctx: Context,
): void {
  const { labels, spec: wanted } = template;
  try {
    const input = { project, name: freeCopyName(snapshot, { project, stem: name }, ctx), labels, spec: wanted };
    createInstance(snapshot, input, ctx);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.code === 'QuotaExceeded') return;
    const field = error.field?.replace(/^spec/, 'spec.template.spec');
    const message = error.message.replaceAll(error.field ?? '\0', field ?? '');
    throw new ApiError(error.code, message, {
      ...(field === undefined ? {} : { field }),
      details: error.details,
      cause: error,
    });
  }
}

const suffixes = 36 ** 4;

/** `stem` and four more characters. */
export function freeCopyName(
  snapshot: Snapshot,
  { project, stem }: { readonly project: string; readonly stem: string },
  ctx: Context,
): string {
  for (;;) {
    const free = `${stem}-${ctx.prng.below(suffixes).toString(36).padStart(4, '0')}`;
    if (!snapshot.get('instance', keys.instance(project, free))) return free;
  }
}
