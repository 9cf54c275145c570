// A resource as a client sends it: its body, and the input of an operation that follows from it.

import { isRecord } from '../../../base/is-record.ts';
import { type TSchema, Type } from 'typebox';
import { ApiError } from '../../../api/errors.ts';
import type { AnyResource } from '../../../api/resources/index.ts';
import type { ResourceDefinition } from '../../../api/resources/metadata.ts';
import { createMetadata } from '../../../api/routes/resource-schemas.ts';
import type { ResourceInput } from './resource-operations.ts';
import type { RouteRequest } from '../route.ts';

export const defaultProject = 'default';
/** The body of a create. */
export function createBody(definition: ResourceDefinition) {
  return sentBody(createMetadata(definition));
}

/** The spec is checked by the operation, which knows its type. */
export function sentBody<M extends TSchema>(metadata: M) {
  return Type.Object({ metadata, spec: Type.Unknown({ default: {} }) }, { additionalProperties: false });
}

interface SentBody {
  readonly metadata: {
    readonly name?: unknown;
    readonly project?: unknown;
    readonly labels: Readonly<Record<string, string>>;
  };
  readonly spec: unknown;
}

export function inputOf(sent: SentBody, definition: ResourceDefinition): ResourceInput {
  const { name, project, labels } = sent.metadata;
  return {
    name: typeof name === 'string' ? name : '',
    project: definition.scope === 'fleet' ? '' : typeof project === 'string' ? project : defaultProject,
    labels,
    spec: sent.spec,
  };
}

/** A resource may be sent back as it was read: fields that users cannot write are dropped when they are unchanged, and refused otherwise. */
export function withoutReadOnly(sent: unknown, current: AnyResource | undefined): unknown {
  if (!isRecord(sent)) return sent;
  const { kind, schemaVersion: _version, status: _status, ...rest } = sent;
  if (kind !== undefined && current && kind !== current.kind) {
    throw new ApiError('InvalidRequest', `this is another kind of resource, not a ${current.kind}`, {
      field: 'kind',
    });
  }
  if (!isRecord(rest['metadata'])) return rest;
  const metadata = { ...rest['metadata'] };
  for (const field of [
    'id',
    'name',
    'project',
    'generation',
    'createdAtMs',
    'deletionRequestedAtMs',
    'traceParent',
  ] as const) {
    if (!(field in metadata)) continue;
    if (current && field !== 'generation' && metadata[field] !== current.metadata[field]) {
      throw new ApiError('InvalidRequest', `metadata.${field} cannot be changed`, { field: `metadata.${field}` });
    }
    delete metadata[field];
  }
  return { ...rest, metadata };
}

export function idempotencyKeyOf({ headers }: RouteRequest): { idempotencyKey?: string } {
  const key = headers['idempotency-key'];
  if (key === undefined) return {};
  if (/^[A-Za-z0-9._:-]{1,128}$/.test(key)) return { idempotencyKey: key };
  throw new ApiError('InvalidRequest', 'the Idempotency-Key must be 1 to 128 letters, digits and . _ : -', {
    field: 'Idempotency-Key',
  });
}
