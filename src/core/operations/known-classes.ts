// Refuses unknown resource classes.

import { ApiError } from '../../api/errors.ts';
import { classFault } from '../../api/resource-class.ts';

/** Checks the keys of `byClass`. Throws `InvalidRequest` naming the field. `more`: further classes allowed there. */
export function assertKnownClasses(byClass: object, field: string, more: readonly string[] = []): void {
  for (const resourceClass of Object.keys(byClass)) {
    const fault = classFault(resourceClass, more);
    if (fault !== undefined) throw new ApiError('InvalidRequest', fault, { field: `${field}.${resourceClass}` });
  }
}
