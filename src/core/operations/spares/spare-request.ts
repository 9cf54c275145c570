// The words of `/spare` in terms of spares: what a request asks for, and what its sender reads.

import { parse } from '../../../api/parse.ts';
import { type Spare, SpareSpec } from '../../../api/resources/spare.ts';
import type { SpareRequest, SpareResult } from '../../../api/routes/spares.ts';
import { conditionOf } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import type { Decision } from '../decision.ts';
import { type RequestFields, withRequestField } from '../tasks/request-field.ts';
import { createSpare } from './spare.ts';

export interface SpareInput {
  readonly project: string;
  readonly request: SpareRequest;
  readonly idempotencyKey?: string;
}

/** Throws what creating a spare throws, naming the fields of the request. */
export function prepareSpare(snapshot: Snapshot, { request, ...input }: SpareInput, ctx: Context): Decision {
  try {
    return createSpare(snapshot, { ...input, name: request.name ?? '', labels: {}, spec: specOf(request) }, ctx);
  } catch (error) {
    throw withRequestField(error, fields);
  }
}

function specOf({
  pool,
  requested_cpu: cpus,
  requested_memory: memoryMiB,
  dedicated,
  ...rest
}: SpareRequest): SpareSpec {
  const { name: _, ready, ttl_s: ttl, image, provisioner, variables } = rest;
  const { timeout_s: timeout, ...question } = ready ?? {};
  return parse(SpareSpec, {
    cpus,
    memoryMiB,
    placement: { ...(pool === undefined ? {} : { pool }), ...(dedicated ? { dedicated } : {}) },
    provisioner,
    variables,
    ...(image === undefined ? {} : { image }),
    ...(ready === undefined || timeout === undefined ? {} : { ready: { ...question, timeoutMs: timeout * 1_000 } }),
    ttlMs: ttl * 1_000,
  });
}

const fields: RequestFields = {
  'spec.cpus': 'requested_cpu',
  'spec.memoryMiB': 'requested_memory',
  'spec.placement.pool': 'pool',
  'spec.placement.dedicated': 'dedicated',
  'spec.image': 'image',
  'spec.provisioner': 'provisioner',
  'spec.ready': 'ready',
  'metadata.name': 'name',
};

export function spareResultOf({ metadata, spec, status }: Spare, snapshot: Pick<Snapshot, 'get'>): SpareResult {
  const { host, address, heldUntilMs, phase } = status;
  const outside = host === undefined ? undefined : snapshot.get('host', keys.host(host))?.value.status.outside?.ip;
  return {
    spare_id: metadata.id,
    name: metadata.name,
    status: statusWords[phase],
    message: conditionOf(status.conditions, 'Ready')?.message ?? '',
    host: host ?? null,
    ip: address ?? (status.instance === undefined ? outside : undefined) ?? null,
    provisioner: spec.provisioner,
    held_until: phase === 'Ready' && heldUntilMs !== undefined ? new Date(heldUntilMs).toISOString() : null,
  };
}

const statusWords = {
  Pending: 'pending',
  Provisioning: 'provisioning',
  Checking: 'checking',
  Ready: 'ready',
  Releasing: 'releasing',
  Released: 'released',
  Failed: 'failed',
  Unknown: 'unknown',
} as const;
