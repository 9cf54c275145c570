// The times that containers have to end, within that of their instance.

import { ApiError } from '../../../api/errors.ts';
import type { InstanceSpec } from '../../../api/resources/instance.ts';

/** Throws `InvalidRequest` naming the field. */
export function assertGraces({ containers = [], stopGraceMs }: Pick<InstanceSpec, 'containers' | 'stopGraceMs'>): void {
  for (const [i, container] of containers.entries()) {
    if ((container.stopGraceMs ?? 0) <= stopGraceMs) continue;
    throw new ApiError(
      'InvalidRequest',
      `container "${container.name}" has ${container.stopGraceMs} ms to end, and its instance only ${stopGraceMs}; raise spec.stopGraceMs`,
      { field: `spec.containers[${i}].stopGraceMs` },
    );
  }
}
