// Fetches a JSON document of another system within limits of time and size. It follows no redirect: the answer must come from
// the address that was asked.

import type { Clock } from './clock.ts';

/** The part of `fetch` that is used. */
export type WebFetch = (url: string, init: WebInit) => Promise<WebResponse>;

interface WebInit {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly signal: AbortSignal;
  readonly redirect: 'manual';
}

interface WebResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: AsyncIterable<Uint8Array> | null;
}

export interface Web {
  readonly fetch: WebFetch;
  readonly clock: Clock;
}

export interface JsonRequest {
  /** Sent as a form by POST; absent: a GET. */
  readonly form?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface JsonAnswer {
  readonly status: number;
  readonly json: unknown;
}

const answerMsMax = 5_000;
/** Key sets of large issuers have some 20 KiB. */
const bytesMax = 256 * 1024;

/** Throws an `Error` that says why there is no JSON; statuses of errors are answers. */
export async function fetchJson(
  { fetch, clock }: Web,
  url: string,
  { form, headers = {} }: JsonRequest = {},
): Promise<JsonAnswer> {
  const overdue = new AbortController();
  const timer = clock.setTimer(answerMsMax, () => overdue.abort(), { background: true });
  try {
    const call = fetch;
    const response = await call(url, {
      method: form === undefined ? 'GET' : 'POST',
      headers: {
        accept: 'application/json',
        ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
        ...headers,
      },
      ...(form === undefined ? {} : { body: new URLSearchParams(form).toString() }),
      signal: overdue.signal,
      redirect: 'manual',
    });
    const { status } = response;
    if (status === 0 || (status >= 300 && status < 400)) throw new Error('it redirects, which is not followed');
    return { status, json: JSON.parse(await textOf(response, overdue)) };
  } catch (cause) {
    if (overdue.signal.aborted && !(cause instanceof TooLarge))
      throw new Error(`${url}: no answer within ${answerMsMax} ms`, { cause });
    throw new Error(`${url}: ${cause instanceof SyntaxError ? 'the answer is not JSON' : reasonOf(cause)}`, { cause });
  } finally {
    timer.cancel();
    overdue.abort(); // ends an answer that was not read to its end
  }
}

class TooLarge extends Error {
  override name = 'TooLarge';
}

async function textOf({ body, headers }: WebResponse, overdue: AbortController): Promise<string> {
  const tooLarge = new TooLarge(`the answer is over ${bytesMax} bytes`);
  if (Number(headers.get('content-length') ?? 0) > bytesMax) throw tooLarge;
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let size = 0;
  let text = '';
  for await (const bytes of body ?? []) {
    size += bytes.byteLength;
    if (size > bytesMax) throw tooLarge;
    text += decoder.decode(bytes, { stream: true });
    if (overdue.signal.aborted) throw new Error('aborted');
  }
  return text + decoder.decode();
}

/** fetch puts the reason into `cause`. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message || error.cause.name : error.message;
}
