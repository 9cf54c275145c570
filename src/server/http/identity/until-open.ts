// Holds the requests that come between the moment a server listens and the moment it may write: they are answered as those after it.

import { ApiError } from '../../../api/errors.ts';
import type { Identity, Shown } from './authenticate.ts';

type Identify = (shown: Shown) => Identity | Promise<Identity>;

export class UntilOpen {
  readonly #come = Promise.withResolvers<void>();
  #open = false;

  constructor() {
    this.#come.promise.catch(() => {}); // each held request has the error
  }

  /** `identify`, which waits until `come`, and rejects with `Unavailable` after `fail`. */
  hold(identify: Identify): Identify {
    return (shown) => (this.#open ? identify(shown) : this.#come.promise.then(() => identify(shown)));
  }

  come(): void {
    this.#open = true;
    this.#come.resolve();
  }

  /** The server stops instead. */
  fail(): void {
    this.#come.reject(new ApiError('Unavailable', 'the server could not start; its log says why'));
  }
}
