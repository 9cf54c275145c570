// Fetches a list of nodes from its source: conditional, bounded in time and size, without redirects. The size counts after
// decompression.

import { mebibyte } from '../../base/bytes.ts';
import type { Web } from '../../base/fetch-json.ts';
import { describeError } from '../../base/log.ts';

export type Fetched =
  | { readonly kind: 'list'; readonly json: unknown; readonly etag: string | undefined }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'failed'; readonly why: string };

const answerMsMax = 10_000;
const bytesMax = 10 * mebibyte;

interface NodesRequest {
  readonly url: string;
  readonly etag: string | undefined;
  readonly authorization: string | undefined;
  readonly signal: AbortSignal;
}

export async function fetchNodes(
  { fetch, clock }: Web,
  { url, etag, authorization, signal }: NodesRequest,
): Promise<Fetched> {
  const overdue = new AbortController();
  const abort = (): void => overdue.abort();
  const timer = clock.setTimer(answerMsMax, abort, { background: true });
  signal.addEventListener('abort', abort, { once: true });
  try {
    const call = fetch;
    const response = await call(url, {
      method: 'GET',
      headers: {
        accept: 'application/json',
        ...(etag === undefined ? {} : { 'if-none-match': etag }),
        ...(authorization === undefined ? {} : { authorization }),
      },
      signal: overdue.signal,
      redirect: 'manual',
    });
    if (response.status === 304 && etag !== undefined) return { kind: 'unchanged' };
    if (response.status === 401 || response.status === 403)
      return { kind: 'failed', why: `it answered ${response.status}${hintOn(authorization)}` };
    if (response.status !== 200) return { kind: 'failed', why: `it answered ${response.status}` };
    const json: unknown = JSON.parse(await textOf(response.body ?? [], overdue.signal));
    return { kind: 'list', json, etag: response.headers.get('etag')?.slice(0, 256) };
  } catch (error) {
    if (error instanceof TooLarge) return { kind: 'failed', why: error.message };
    if (overdue.signal.aborted) return { kind: 'failed', why: `no answer within ${answerMsMax / 1000} s` };
    // What a parser says quotes the text, which may be anything.
    return { kind: 'failed', why: error instanceof SyntaxError ? 'the answer is not JSON' : reasonOf(error) };
  } finally {
    timer.cancel();
    signal.removeEventListener('abort', abort);
    overdue.abort(); // ends an answer that was not read to its end
  }
}

function hintOn(authorization: string | undefined): string {
  if (authorization === undefined) return ': it wants credentials, which inventoryLogins of the server can have';
  return ': it refuses the credentials of the server';
}

class TooLarge extends Error {
  override name = 'TooLarge';
}

async function textOf(body: AsyncIterable<Uint8Array> | readonly Uint8Array[], signal: AbortSignal): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let size = 0;
  let text = '';
  for await (const bytes of body) {
    size += bytes.byteLength;
    if (size > bytesMax) throw new TooLarge(`the answer is over ${bytesMax} bytes`);
    text += decoder.decode(bytes, { stream: true });
    if (signal.aborted) throw new Error('aborted');
  }
  return text + decoder.decode();
}

/** fetch puts the reason into `cause`. */
function reasonOf(error: unknown): string {
  return describeError(error instanceof Error && error.cause !== undefined ? error.cause : error).slice(0, 200);
}
