// The newest revision of the store itself, which the cache of this control plane may not have yet.

import { ApiError } from '../../api/errors.ts';
import type { Revision, Store } from '../../store/store.ts';

/** Throws `Unavailable`. */
export async function newestRevision(store: Store): Promise<Revision> {
  const answer = await store.commit([], []).catch((error: unknown) => {
    throw new ApiError('Unavailable', 'the store cannot be asked now; try again', { cause: error });
  });
  return answer.ok ? answer.revision : 0;
}
