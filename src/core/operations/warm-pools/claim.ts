// A claim of a guest of a warm pool: one Plan gives it to the caller and counts the claim. Nothing of the running guest changes, so it is
// usable at once. When none is ready, an instance of the same template is created.

import { ApiError } from '../../../api/errors.ts';
import type { ClaimSpec } from '../../../api/routes/warm-pools.ts';
import type { Instance } from '../../../api/resources/instance.ts';
import type { Labels } from '../../../api/resources/metadata.ts';
import { type WarmPool, warmPoolLabel } from '../../../api/resources/warm-pool.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import type { Change } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { claimable, guestsOf } from '../../warm-pools/guests.ts';
import { earlierCreate, rememberCreate } from '../create.ts';
import type { Decision } from '../decision.ts';
import { createInstance } from '../instance.ts';
import { assertLifetime } from '../instances/lifetime.ts';
import { assertPlacementRules } from '../placement-rules.ts';
import { existing } from '../replace.ts';
import { warmInput } from './warm-pool.ts';

interface ClaimInput {
  readonly project: string;
  /** Of the warm pool. */
  readonly name: string;
  readonly labels: Labels;
  readonly spec: ClaimSpec;
  readonly idempotencyKey?: string;
}

/** The decision's key is that of the instance. Throws `Conflict` when no guest is ready and none may be created. */
export function claimWarmGuest(snapshot: Snapshot, input: ClaimInput, ctx: Context): Decision {
  const earlier = earlierCreate(snapshot, input, 'instance');
  if (earlier) return earlier;
  const pool = existing(snapshot, 'warmPool', keys.warmPool(input.project, input.name));
  if (pool.value.metadata.deletionRequestedAtMs !== undefined)
    throw new ApiError('Conflict', `warm pool "${input.name}" is being deleted`);
  if (pool.value.spec.forJobs)
    throw new ApiError(
      'Conflict',
      `the guests of warm pool "${input.name}" wait for jobs: a job names it in spec.warmPool`,
    );
  const { ttlMs, expiresAtMs } = input.spec;
  assertLifetime(input.spec, { createdAtMs: ctx.nowMs, nowMs: ctx.nowMs });
  const endMs = expiresAtMs ?? (ttlMs === undefined ? undefined : ctx.nowMs + ttlMs);
  const found = claimable(guestsOf(snapshot, pool.value, ctx.nowMs));
  if (found === undefined && !input.spec.coldStart)
    throw new ApiError('Conflict', `warm pool "${input.name}" has no guest that is ready; ${saidOf(pool.value)}`, {
      details: { wanted: pool.value.status.wanted, ready: 0 },
    });
  const given = found
    ? claimed(snapshot, found.entry, { input, endMs }, ctx)
    : createdCold(snapshot, pool.value, { input, endMs }, ctx);
  return {
    plan: {
      changes: [
        ...given.changes,
        counted(pool, found !== undefined),
        ...rememberCreate(input, 'instance', { key: given.key, id: given.id }, ctx),
      ],
    },
    key: given.key,
    changed: true,
  };
}

function saidOf({ status }: WarmPool): string {
  return status.conditions[0]?.message ?? 'try again later';
}

interface Wanted {
  readonly input: ClaimInput;
  readonly endMs: number | undefined;
}

interface Given {
  readonly changes: readonly Change[];
  readonly key: string;
  readonly id: string;
}

function claimed(
  snapshot: Snapshot,
  { key, revision, value }: Entry<Instance>,
  { input, endMs }: Wanted,
  ctx: Context,
): Given {
  const { metadata, spec } = value;
  const { warmPool: _, ...status } = value.status;
  const labels = { ...metadata.labels, ...input.labels, [warmPoolLabel]: input.name };
  assertPlacementRules(snapshot, { project: metadata.project, labels, placement: spec.placement });
  const changes = spec.powerState !== 'running' || endMs !== undefined;
  const instance: Instance = {
    ...value,
    metadata: { ...metadata, labels, generation: metadata.generation + (changes ? 1 : 0) },
    spec: changes ? { ...spec, powerState: 'running', ...(endMs === undefined ? {} : { expiresAtMs: endMs }) } : spec,
    status: { ...status, claimed: { pool: input.name, atMs: ctx.nowMs, warm: true } },
  };
  const message = `claimed from warm pool "${input.name}"`;
  return {
    changes: [
      { key, ifRevision: revision, value: instance },
      eventChange(instance, { reason: 'Claimed', message }, ctx),
    ],
    key,
    id: metadata.id,
  };
}

function createdCold(snapshot: Snapshot, pool: WarmPool, { input, endMs }: Wanted, ctx: Context): Given {
  const made = warmInput(snapshot, pool, ctx);
  const labels = { ...made.labels, ...input.labels, [warmPoolLabel]: input.name };
  const spec = endMs === undefined ? made.spec : { ...made.spec, expiresAtMs: endMs };
  const { plan, key } = createInstance(snapshot, { ...made, labels, spec }, ctx);
  let id = '';
  const changes = plan.changes.map((change) => {
    const { value } = change;
    if (change.key !== key || value?.kind !== 'instance') return change;
    id = value.metadata.id;
    const status = { ...value.status, claimed: { pool: input.name, atMs: ctx.nowMs, warm: false } };
    return { ...change, value: { ...value, status } };
  });
  return { changes, key, id };
}

export function counted({ key, revision, value }: Entry<WarmPool>, hit: boolean): Change {
  const { hits, misses } = value.status;
  const status = { ...value.status, ...(hit ? { hits: hits + 1 } : { misses: misses + 1 }) };
  return { key, ifRevision: revision, value: { ...value, status } };
}
