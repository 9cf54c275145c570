// What users do with spares: prepare one and release it. The room is held by a task of its own, or by the instance that the spare is.

import { ApiError } from '../../../api/errors.ts';
import { InstanceSpec } from '../../../api/resources/instance.ts';
import { parse } from '../../../api/parse.ts';
import { builtInProvisioner, isEnded, type Spare, type SpareSpec } from '../../../api/resources/spare.ts';
import type { AskSpec, TaskSpec } from '../../../api/resources/task.ts';
import { fingerprint } from '../../../base/hash.ts';
import { withConditions } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import type { Change } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { schemaVersion } from '../../state/upgrade.ts';
import { assertFree, type CreateInput, earlierCreate, newMetadata, rememberCreate } from '../create.ts';
import { alreadyDone, type Decision } from '../decision.ts';
import { createInstance } from '../instance.ts';
import { type DeleteInput, existing } from '../replace.ts';
import { createTask } from '../task.ts';
import { begun, releaseRoomOf, spareChange, taskNameOf, withoutStep } from './spare-change.ts';

/** Its room does not expire: the spare says when it is released. */
const taskTtlMs = 30 * 24 * 3_600_000;

/** `input.name` may be empty: then it is derived from the id. */
export function createSpare(snapshot: Snapshot, input: CreateInput<SpareSpec>, ctx: Context): Decision {
  const earlier = earlierCreate(snapshot, input, 'spare');
  if (earlier) return earlier;
  assertSpare(input.spec, ctx.policy.provisioners);
  const id = ctx.newId('spare');
  const name = input.name || `spare-${fingerprint(id)}`;
  const key = keys.spare(input.project, name);
  assertFree(snapshot, 'spare', key, name);
  const held = heldBy(snapshot, { ...input, name, id }, ctx);
  const spare: Spare = {
    kind: 'spare',
    schemaVersion,
    metadata: newMetadata(id, { ...input, name }, ctx),
    spec: input.spec,
    status: {
      phase: 'Pending',
      ...held.by,
      attempt: 0,
      conditions: withConditions(
        [],
        [{ type: 'Ready', status: 'False', reason: 'Accepted', message: 'waiting for room on a host' }],
        ctx.nowMs,
      ),
    },
  };
  return {
    plan: {
      changes: [
        { key, ifRevision: 0, value: spare },
        ...held.changes,
        ...rememberCreate(input, 'spare', { key, id }, ctx),
        eventChange(spare, { reason: 'Accepted', message: 'accepted' }, ctx),
      ],
    },
    key,
    changed: true,
  };
}

function assertSpare({ provisioner, image, ready }: SpareSpec, configured: readonly string[] | undefined): void {
  const refuse = (field: string, message: string): never => {
    throw new ApiError('InvalidRequest', `${field}: ${message}`, { field });
  };
  if (provisioner === builtInProvisioner && image === undefined)
    refuse('spec.image', 'a spare of the provisioner vm needs an image');
  if (configured !== undefined && provisioner !== builtInProvisioner && !configured.includes(provisioner)) {
    const known = [builtInProvisioner, ...configured].join(', ');
    refuse('spec.provisioner', `no provisioner "${provisioner}" is configured; there are: ${known}`);
  }
  if (ready === undefined) return;
  const ways = (['http', 'tcp', 'kubernetes'] as const).filter((way) => ready[way] !== undefined);
  if (ways.length !== 1)
    refuse('spec.ready', `it has ${ways.join(' and ') || 'no question'}; set one of http, tcp and kubernetes`);
}

/** A task, or the instance: created in the same Plan. */
function heldBy(
  snapshot: Snapshot,
  { project, name, id, labels, spec }: CreateInput<SpareSpec> & { readonly id: string },
  ctx: Context,
): { readonly changes: readonly Change[]; readonly by: { readonly task: string } | { readonly instance: string } } {
  if (spec.provisioner === builtInProvisioner) {
    const made = createInstance(
      snapshot,
      { project, name, labels, spec: parse(InstanceSpec, askOf(spec), 'spec') },
      ctx,
    );
    return { changes: made.plan.changes, by: { instance: madeId(made) } };
  }
  const task: TaskSpec = { ...askOf(spec), ttlMs: taskTtlMs, whenFull: spec.whenFull ?? 'fail' };
  const made = createTask(snapshot, { project, name: taskNameOf(id), labels, spec: task }, ctx);
  return { changes: made.plan.changes, by: { task: madeId(made) } };
}

function madeId({ plan, key }: Decision): string {
  const made = plan.changes.find((change) => change.key === key)?.value;
  return made && 'metadata' in made ? made.metadata.id : '';
}

/** The fields about room. */
function askOf(spec: SpareSpec): AskSpec {
  const {
    provisioner: _1,
    variables: _2,
    ready: _3,
    ttlMs: _4,
    attemptsMax: _5,
    provisionMs: _6,
    whenFull: _7,
    waitMs: _8,
    ...ask
  } = spec;
  return ask;
}

interface ReleaseInput extends DeleteInput {
  /** Its provisioner is not asked: a person has seen to it. */
  readonly force?: boolean;
}

/** Undoes what was made of it, then releases its room. Repeating it changes nothing. */
export function releaseSpare(snapshot: Snapshot, input: ReleaseInput, ctx: Context): Decision {
  const key = keys.spare(input.project, input.name);
  const entry = existing(snapshot, 'spare', key, input.ifRevision);
  const { status } = entry.value;
  if (isEnded(status.phase) || (status.phase === 'Releasing' && !input.force)) return alreadyDone(entry);
  // Nothing was begun before it had a host; and an instance is removed by the controller.
  const atOnce = status.instance === undefined && (input.force === true || status.phase === 'Pending');
  const changes = atOnce
    ? [
        ...spareChange(
          entry,
          { ...withoutStep(status), phase: 'Released', endedAtMs: ctx.nowMs },
          released(input),
          ctx,
        ),
        ...releaseRoomOf(snapshot, entry.value, ctx),
      ]
    : spareChange(
        entry,
        begun({ ...withoutStep(status), phase: 'Releasing' }, ctx),
        { reason: 'Releasing', message: 'it is released by request' },
        ctx,
      );
  return { plan: { changes }, key, changed: true };
}

function released({ force }: ReleaseInput) {
  const message = force ? 'it was released by force: its provisioner was not asked' : 'it was released';
  return { reason: 'Released', message };
}
