// Changes of several instances in one Plan, made one after the other: a refusal ends them, for what refuses one refuses the others.

import { ApiError } from '../../../api/errors.ts';
import type { Change } from '../../state/plan.ts';

export interface MadeChanges {
  readonly changes: readonly Change[];
  /** Why the rest was not made. */
  readonly refusal: ApiError | undefined;
}

/** What `make` answers for each, up to the first that it refuses with an `ApiError`. Other errors are thrown. */
export function untilRefused<T>(all: Iterable<T>, make: (each: T) => readonly Change[]): MadeChanges {
  const changes: Change[] = [];
  try {
    for (const each of all) changes.push(...make(each));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { changes, refusal: error };
  }
  return { changes, refusal: undefined };
}
