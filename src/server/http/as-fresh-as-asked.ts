// Read-your-writes across control planes: a request may name a revision that the answer must include at least, and waits here until this
// control plane has it.

import { type Clock } from '../../base/clock.ts';
import { ApiError } from '../../api/errors.ts';
import { atLeastHeader } from '../../api/at-least.ts';
import type { Cache } from '../../core/state/cache.ts';
import type { Store } from '../../store/store.ts';
import { newestRevision } from './newest-revision.ts';
import type { Route } from './route.ts';

/** A commit reaches the other control planes within milliseconds. */
const waitMsMax = 5_000;

export function asFreshAsAsked(
  routes: readonly Route[],
  { cache, clock, store }: { readonly cache: Cache; readonly clock: Clock; readonly store: Store },
): Route[] {
  return routes.map((route) => ({
    ...route,
    handle(request) {
      const asked = request.headers[atLeastHeader];
      if (asked === undefined) return route.handle(request);
      const revision = /^\d{1,15}$/.test(asked) ? Number(asked) : Number.NaN;
      if (Number.isNaN(revision))
        throw new ApiError('InvalidRequest', `${atLeastHeader} must be a revision`, { field: atLeastHeader });
      if (cache.holds(revision)) return route.handle(request);
      return reach(revision, { cache, clock, store }).then(() => route.handle(request));
    },
  }));
}

async function reach(
  revision: number,
  { cache, clock, store }: { readonly cache: Cache; readonly clock: Clock; readonly store: Store },
): Promise<void> {
  // Of another epoch, before a restore: there is nothing to wait for.
  const wanted = Math.min(revision, await newestRevision(store));
  await new Promise<void>((resolve, reject) => {
    const end = (finish: () => void): void => {
      timer.cancel();
      forget();
      finish();
    };
    const timer = clock.setTimer(waitMsMax, () =>
      end(() =>
        reject(new ApiError('Unavailable', `this control plane has not heard of revision ${wanted} yet; try again`)),
      ),
    );
    const look = (): void => {
      if (cache.holds(wanted)) end(resolve);
    };
    const forget = cache.onRevision(look);
    look();
  });
}
