// How long to leave a forge alone after an answer, and whether to ask again at all. Pure.

import { backoffMs } from '../../../base/backoff.ts';
import type { Prng } from '../../../base/prng.ts';
import type { ForgeAnswer } from '../../intake/forges/forge-api.ts';

/** refused: sending it again cannot help. */
export type Verdict =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'refused'; readonly error: string }
  | { readonly kind: 'later'; readonly error: string; readonly pauseMs: number };

interface Asked {
  readonly nowMs: number;
  readonly prng: Prng;
  /** How often in a row the forge has failed before. */
  readonly failures: number;
  /** How often it has forbidden this status before. */
  readonly forbidden: number;
}

/** As GitHub asks of clients that get no time from it, and doubled with each failure. */
const limited = { delayMsMin: 60_000, delayMsMax: 3_600_000 };
const broken = { delayMsMin: 2_000, delayMsMax: 300_000 };
/** GitHub's limits are by the hour. A longer pause is an error of its clock or ours. */
const pauseMsMax = 3_600_000;
/** A token without the right does not get it by asking; but GitHub answers the same to requests that are too many. */
const forbiddenMax = 5;
const errorLengthMax = 512;

export function verdictOf(answer: ForgeAnswer, asked: Asked): Verdict {
  const { status } = answer;
  if (status >= 200 && status < 300) return { kind: 'accepted' };
  const error = errorOf(answer);
  if (status === 429 || (status === 403 && isLimited(answer)))
    return { kind: 'later', error, pauseMs: saidPauseMs(answer, asked.nowMs) ?? longPauseMs(asked) };
  if (status === 401 || status === 403)
    return asked.forbidden + 1 >= forbiddenMax
      ? { kind: 'refused', error }
      : { kind: 'later', error, pauseMs: longPauseMs(asked) };
  if (status === 0 || status === 408 || status >= 500) {
    const pauseMs = saidPauseMs(answer, asked.nowMs) ?? backoffMs(asked.failures, broken, asked.prng);
    return { kind: 'later', error, pauseMs };
  }
  return { kind: 'refused', error };
}

function isLimited({ headers, text }: ForgeAnswer): boolean {
  return (
    headers.get('retry-after') !== null ||
    headers.get('x-ratelimit-remaining') === '0' ||
    /rate limit/i.test(text.slice(0, 4096))
  );
}

function longPauseMs({ failures, prng }: Asked): number {
  return Math.max(limited.delayMsMin, backoffMs(failures, limited, prng));
}

/** `Retry-After` counts before `x-ratelimit-reset`; undefined: the forge says nothing. */
function saidPauseMs({ headers }: ForgeAnswer, nowMs: number): number | undefined {
  const after = headers.get('retry-after') ?? '';
  if (/^\d{1,9}$/.test(after)) return bounded(Number(after) * 1000);
  const date = after === '' ? Number.NaN : Date.parse(after);
  if (!Number.isNaN(date)) return bounded(date - nowMs);
  const remaining = headers.get('x-ratelimit-remaining') ?? '0';
  const reset = headers.get('x-ratelimit-reset') ?? '';
  return remaining === '0' && /^\d{1,12}$/.test(reset) ? bounded(Number(reset) * 1000 - nowMs) : undefined;
}

function bounded(pauseMs: number): number {
  return Math.min(pauseMsMax, Math.max(1_000, pauseMs));
}

/** `422: Validation Failed`. */
function errorOf({ status, text }: ForgeAnswer): string {
  const said = /"message"\s*:\s*"((?:[^"\\]|\\.)*)"/.exec(text.slice(0, 4096))?.[1] ?? text.slice(0, 4096);
  const plain = said.replaceAll(/[^\x20-\x7e]+/g, ' ').trim();
  return `${status === 0 ? 'no answer' : status}${plain === '' ? '' : `: ${plain}`}`.slice(0, errorLengthMax);
}
