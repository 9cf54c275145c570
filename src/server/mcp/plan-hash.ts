// Writes need the hash that "plan" answered to the same request: a model cannot write what it has not looked at before.

import { createHmac } from 'node:crypto';
import { ApiError } from '../../api/errors.ts';
import { canonicalJson } from '../../base/json/canonical-json.ts';

export class PlanHash {
  readonly #key: string;

  /** `key`: a secret, so that a hash can only come from an answer. */
  constructor(key: string) {
    this.#key = key;
  }

  of(action: string, request: unknown): string {
    return createHmac('sha256', this.#key)
      .update(canonicalJson([action, written(request)]))
      .digest('hex')
      .slice(0, 32);
  }

  /** Throws `Conflict` unless the hash is of this very request. */
  check(action: string, request: unknown, hash: string): void {
    if (hash === this.of(action, request)) return;
    throw new ApiError('Conflict', 'planHash is not of this request: call "plan" with the same arguments first', {
      field: 'planHash',
    });
  }
}

/** As it is sent: what is undefined is not there. */
function written(request: unknown): unknown {
  return JSON.parse(JSON.stringify(request));
}
