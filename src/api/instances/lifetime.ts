// When an instance comes to its end by itself.

import type { Instance } from '../resources/instance.ts';

/** In wall time; undefined: it stays until its deletion is requested. */
export function expiryOf({
  metadata,
  spec,
}: {
  readonly metadata: Pick<Instance['metadata'], 'createdAtMs'>;
  readonly spec: Pick<Instance['spec'], 'ttlMs' | 'expiresAtMs'>;
}): number | undefined {
  return spec.expiresAtMs ?? (spec.ttlMs === undefined ? undefined : metadata.createdAtMs + spec.ttlMs);
}
