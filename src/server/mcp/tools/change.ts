// Tools that change existing resources: rebalance a fleet, resize an instance, scale a workload, delete what others use. Each shows its plan
// first, and applies the plan by its hash.

import { type Static, Type } from 'typebox';
import { RebalanceOptions } from '../../../api/plans/rebalance.ts';
import { ResizeOptions } from '../../../api/plans/resize-plan.ts';
import type { UsedKind } from '../../../api/plans/used-kinds.ts';
import { replicasMax } from '../../../api/resources/workload.ts';
import { type ToolContext, tool } from '../tool.ts';
import { cleanValue } from '../untrusted.ts';
import { closed, name, project } from './fields.ts';

const planHash = Type.String({
  minLength: 8,
  maxLength: 64,
  description: 'as the plan with the same arguments has it',
});

const rebalanceFields = Type.Partial(RebalanceOptions).properties;

export const planRebalanceTool = tool({
  name: 'plan_rebalance',
  title: 'Plan to empty little-used hosts',
  description:
    'Says which hosts could be emptied by moving their instances to others, and each move. Nothing is changed. Answers the planHash that "rebalance" needs.',
  input: Type.Object(rebalanceFields, closed),
  async run(options, { client }) {
    const { plan } = await client.rebalance(options);
    return { facts: { planHash: plan?.hash, moves: plan?.moves }, untrusted: cleanValue({ plan }) };
  },
});

export const rebalanceTool = tool({
  name: 'rebalance',
  title: 'Empty little-used hosts',
  description:
    'Carries out the plan that "plan_rebalance" answered, with the same arguments. Refused when the plan is another by now.',
  input: Type.Object({ ...rebalanceFields, planHash }, closed),
  writes: true,
  destructive: true,
  async run({ planHash: apply, ...options }, { client }) {
    const { drains = [] } = await client.rebalance({ ...options, apply });
    return { facts: { drains: drains.length }, untrusted: cleanValue({ drains }) };
  },
});

const resizeFields = { name, project, ...ResizeOptions.properties };

export const planResizeTool = tool({
  name: 'plan_resize',
  title: 'Plan to resize an instance',
  description:
    'Says whether an instance can have other CPUs, memory or a larger disk on its host, all reasons why not, and whether it restarts. Nothing is changed. Answers the planHash that "resize" needs.',
  input: Type.Object(resizeFields, closed),
  async run({ name: instance, project: asked, ...options }, { client, project: own }) {
    const { plan } = await client.resizeInstance(instance, { project: asked ?? own }, options);
    const { hash, restarts, obstacles } = plan;
    return {
      facts: { planHash: hash, restarts, possible: obstacles.length === 0 },
      untrusted: cleanValue({ plan }),
    };
  },
});

export const resizeTool = tool({
  name: 'resize',
  title: 'Resize an instance',
  description:
    'Carries out the plan that "plan_resize" answered, with the same arguments: an instance that runs is stopped and starts again. Refused when the plan is another by now.',
  input: Type.Object({ ...resizeFields, planHash }, closed),
  writes: true,
  destructive: true,
  async run({ name: instance, project: asked, planHash: apply, ...options }, { client, project: own }) {
    const { begun, plan } = await client.resizeInstance(instance, { project: asked ?? own }, { ...options, apply });
    return { facts: { begun }, untrusted: cleanValue({ plan }) };
  },
});

const Scaling = Type.Object(
  {
    name,
    project,
    replicas: Type.Integer({ minimum: 0, maximum: replicasMax, description: 'copies that are wanted' }),
  },
  closed,
);

export const planScaleTool = tool({
  name: 'plan_scale',
  title: 'Plan to scale a workload',
  description:
    'Says how many copies of a workload would be created, or which would be removed, the first to go first. Nothing is changed. Answers the planHash that "scale" needs.',
  input: Scaling,
  async run({ name: workload, project: asked, replicas }, { client, project: own }) {
    const plan = await client.scaleWorkload(workload, { replicas }, { project: asked ?? own, dryRun: true });
    return { facts: { planHash: plan.hash }, untrusted: cleanValue({ plan }) };
  },
});

export const scaleTool = tool({
  name: 'scale',
  title: 'Scale a workload',
  description:
    'Carries out the plan that "plan_scale" answered, with the same arguments. Refused when the workload has changed, or other copies would be created or removed by now: the refusal says what has changed.',
  input: Type.Object({ ...Scaling.properties, planHash }, closed),
  writes: true,
  destructive: true,
  async run({ planHash: apply, name: workload, project: asked, replicas }, { client, project: own }) {
    const plan = await client.scaleWorkload(workload, { replicas, apply }, { project: asked ?? own });
    return { facts: { applied: plan.applied }, untrusted: cleanValue({ plan }) };
  },
});

const Deletion = Type.Object(
  { kind: Type.Enum(['pool', 'image', 'size', 'group'] satisfies UsedKind[]), name, project },
  closed,
);
type Deletion = Static<typeof Deletion>;

export const planDeletionTool = tool({
  name: 'plan_deletion',
  title: 'Plan to delete a pool, an image, a size or a placement group',
  description:
    'Says what uses it, and what its deletion means for each: nothing that runs is stopped. Nothing is changed. Answers the planHash that "delete" needs.',
  input: Deletion,
  async run(deletion, context) {
    const { effects } = await context.client.dryRunOfDelete(deletion.kind, deletion.name, placeOf(deletion, context));
    return { facts: { planHash: effects?.hash, affected: effects?.count }, untrusted: cleanValue({ effects }) };
  },
});

export const deleteTool = tool({
  name: 'delete',
  title: 'Delete a pool, an image, a size or a placement group',
  description:
    'Deletes what "plan_deletion" was asked about. Refused when the deletion affects other things by now; a placement group in use is never deleted.',
  input: Type.Object({ ...Deletion.properties, planHash }, closed),
  writes: true,
  destructive: true,
  async run({ planHash: apply, ...deletion }, context) {
    const { client } = context;
    const { metadata } = await client.delete(deletion.kind, deletion.name, { ...placeOf(deletion, context), apply });
    return { facts: { deleted: true }, untrusted: cleanValue({ name: metadata.name, id: metadata.id }) };
  },
});

/** Among these kinds, only groups belong to a project. */
function placeOf({ kind, project: asked }: Deletion, { project: own }: ToolContext): { readonly project?: string } {
  return kind === 'group' ? { project: asked ?? own } : {};
}
