// Writes need the hash that "plan" answered to the same request: a model cannot write what it has not looked at before.

import { createHmac } from 'node:crypto';
import { ApiError } from '../../api/errors.ts';

export class PlanHash {
  readonly #key: string;

  /** `key`: a secret, so that a hash can only come from an answer. */
  constructor(key: string) {
    this.#key = key;
  }

  of(action: string, request: unknown): string {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([action, sorted(request)]))
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

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, each]) => [key, sorted(each)]));
}
