// Refuses resource classes that nothing is ever counted by.

import { ApiError } from '../../api/errors.ts';
import { classFault } from '../../api/resource-class.ts';

/** Of the keys of `byClass`. Throws `InvalidRequest` naming the field. `more`: what counts besides there. */
export function assertKnownClasses(byClass: object, field: string, more: readonly string[] = []): void {
  for (const resourceClass of Object.keys(byClass)) {
    const fault = classFault(resourceClass, more);
    if (fault !== undefined) throw new ApiError('InvalidRequest', fault, { field: `${field}.${resourceClass}` });
  }
}
