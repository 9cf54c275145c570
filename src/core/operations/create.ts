// Shared by all creates: names, metadata, idempotency keys.

import { fingerprint } from '../../base/hash.ts';
import { ApiError } from '../../api/errors.ts';
import type { Labels, Metadata } from '../../api/resources/metadata.ts';
import type { Context } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import { type Change, unchanged } from '../state/plan.ts';
import type { AnyRecord, RecordKind } from '../state/records.ts';
import type { Snapshot } from '../state/snapshot.ts';
import type { Decision } from './decision.ts';

export interface CreateInput<Spec> {
  readonly project: string;
  readonly name: string;
  readonly labels: Labels;
  readonly spec: Spec;
  readonly idempotencyKey?: string;
}

export function newMetadata(id: string, input: CreateInput<unknown>, ctx: Context): Metadata {
  return {
    id,
    name: input.name,
    project: input.project,
    revision: 0,
    generation: 1,
    labels: input.labels,
    createdAtMs: ctx.nowMs,
    ...(ctx.traceParent === undefined ? {} : { traceParent: ctx.traceParent }),
  };
}

/** Throws `AlreadyExists` when `key` is taken. */
export function assertFree(snapshot: Snapshot, kind: RecordKind, key: string, name: string): void {
  if (snapshot.get(kind, key)) {
    throw new ApiError('AlreadyExists', `${kind} "${name}" exists already; choose another name, or delete it first`, {
      field: 'metadata.name',
    });
  }
}

/**
 * The result of an earlier create with the same idempotency key, or undefined. Throws `IdempotencyMismatch` when the
 * content differs, and `Conflict` when the created resource is gone.
 */
export function earlierCreate(snapshot: Snapshot, input: CreateInput<unknown>, kind: RecordKind): Decision | undefined {
  if (input.idempotencyKey === undefined) return undefined;
  const entry = snapshot.get('idempotency', keys.idempotency(input.project, input.idempotencyKey));
  if (!entry) return undefined;
  const record = entry.value;
  if (record.fingerprint !== contentOf(input, kind)) {
    throw new ApiError(
      'IdempotencyMismatch',
      `idempotency key "${input.idempotencyKey}" was used for another request; take a new key`,
      {
        field: 'Idempotency-Key',
      },
    );
  }
  if (idOf(snapshot.get(kind, record.resourceKey)?.value) !== record.resourceId) {
    throw new ApiError(
      'Conflict',
      `the ${kind} made with idempotency key "${input.idempotencyKey}" has been deleted since; take a new key`,
      {
        field: 'Idempotency-Key',
      },
    );
  }
  return { plan: unchanged(entry), key: record.resourceKey, changed: false };
}

/** Records the create beside the new resource, in the same Plan. */
export function rememberCreate(
  input: CreateInput<unknown>,
  kind: RecordKind,
  made: { key: string; id: string },
  ctx: Context,
): Change[] {
  if (input.idempotencyKey === undefined) return [];
  return [
    {
      key: keys.idempotency(input.project, input.idempotencyKey),
      ifRevision: 0,
      value: {
        kind: 'idempotency',
        resourceKey: made.key,
        resourceId: made.id,
        fingerprint: contentOf(input, kind),
        createdAtMs: ctx.nowMs,
      },
    },
  ];
}

function contentOf(input: CreateInput<unknown>, kind: RecordKind): string {
  return fingerprint(JSON.stringify([kind, input.project, input.name, input.labels, input.spec]));
}

function idOf(record: AnyRecord | undefined): string | undefined {
  return record && 'metadata' in record ? record.metadata.id : undefined;
}
