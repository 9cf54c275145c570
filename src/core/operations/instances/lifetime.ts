// Whether the requested lifetime of an instance is valid, and whether it may be deleted.

import { ApiError } from '../../../api/errors.ts';
import { expiryOf } from '../../../api/instances/lifetime.ts';
import type { Instance, InstanceSpec } from '../../../api/resources/instance.ts';

type Lifetime = Pick<InstanceSpec, 'ttlMs' | 'expiresAtMs' | 'protected'>;

/** Throws `InvalidRequest` naming the field. */
export function assertLifetime(
  spec: Lifetime,
  { createdAtMs, nowMs }: { readonly createdAtMs: number; readonly nowMs: number },
): void {
  if (spec.ttlMs !== undefined && spec.expiresAtMs !== undefined)
    throw invalid('spec.expiresAtMs', 'an instance has a ttl or a time of expiry; leave one of them out');
  const expiresAtMs = expiryOf({ metadata: { createdAtMs }, spec });
  if (expiresAtMs === undefined) return;
  if (expiresAtMs <= nowMs)
    throw invalid(
      spec.ttlMs === undefined ? 'spec.expiresAtMs' : 'spec.ttlMs',
      `its time would be over already, at ${new Date(expiresAtMs).toISOString()}; name a time to come, or delete it`,
    );
  if (spec.protected === true)
    throw invalid('spec.protected', 'an instance that expires is deleted then, so it cannot be protected');
}

export const sameLifetime = (a: Lifetime, b: Lifetime): boolean =>
  a.ttlMs === b.ttlMs && a.expiresAtMs === b.expiresAtMs && a.protected === b.protected;

/** Throws `Conflict` for one that is protected. */
export function assertDeletable({ metadata, spec }: Instance): void {
  if (spec.protected !== true) return;
  throw new ApiError(
    'Conflict',
    `instance "${metadata.name}" is protected from deletion; "berth unprotect ${metadata.name}" ends that`,
    { field: 'spec.protected' },
  );
}

const invalid = (field: string, message: string): ApiError => new ApiError('InvalidRequest', message, { field });
