// Sends a request to the current server, and to the others in turn where that is safe: when it did not reach the first,
// or when it may be repeated.

import { firstOf } from '../../base/concurrency/first-of.ts';
import { ApiError, changedNothing, retryAfterOf } from '../errors.ts';
import { tlsAdvice } from './tls-advice.ts';
import { type Servers, serversHeader } from './servers.ts';

/** The parts of a request and a response used here. */
interface Init {
  readonly signal?: AbortSignal;
}
interface Answer {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
}

interface Sent<I extends Init> {
  /** Path and query. */
  readonly target: string;
  readonly init: I;
  /** Whether the fleet may receive it twice. */
  readonly repeatable: boolean;
}

type Outcome<A> =
  | { readonly response: A }
  /** `unsent`: the server cannot have started to process it. */
  | { readonly error: ApiError; readonly unsent: boolean };

interface Through<I, A> {
  readonly servers: Servers;
  readonly send: (url: string, init: I) => Promise<A>;
  readonly errorOf: (status: number, text: string) => ApiError;
}

/** A response with status 2xx. Throws `ApiError` for any other, and `Unavailable` when no server responds. */
export async function throughServers<I extends Init, A extends Answer>(
  { servers, send, errorOf }: Through<I, A>,
  sent: Sent<I>,
): Promise<A> {
  const tried = new Set<string>();
  let failure: ApiError | undefined;
  let refusals = 0;
  for (let url = servers.current; ; ) {
    tried.add(url);
    const outcome = await sendTo(url, { servers, send }, sent);
    if ('response' in outcome) {
      const { response } = outcome;
      servers.learn(response.headers.get(serversHeader), url);
      if (response.status >= 200 && response.status < 300) {
        servers.worked(url);
        return response;
      }
    }
    const error = 'error' in outcome ? outcome.error : errorOf(outcome.response.status, await outcome.response.text());
    // Nothing was done, so any request may be sent again.
    const isRefused = 'response' in outcome && outcome.response.status === 429;
    const retryAfterS = retryAfterOf(error) ?? 1;
    if (isRefused && (await servers.waitToRetry({ attempt: refusals++, retryAfterS }, sent.init.signal))) continue;
    const isAway = error.code === 'Unavailable';
    if (isAway) servers.failed(url);
    else if (error.code !== 'HostUnreachable') throw error; // a host may still be connected to another server
    failure = failure === undefined || 'response' in outcome ? error : failure;
    const next = servers.untried(tried);
    const safe = sent.repeatable || ('error' in outcome ? outcome.unsent : changedNothing(error));
    if (next === undefined || !safe || sent.init.signal?.aborted) throw failure;
    await servers.pause(tried.size - 1, sent.init.signal);
    url = next;
  }
}

async function sendTo<I extends Init, A extends Answer>(
  url: string,
  { servers, send }: Pick<Through<I, A>, 'servers' | 'send'>,
  { target, init }: Sent<I>,
): Promise<Outcome<A>> {
  const { limit } = servers;
  const overdue = new AbortController();
  const timer = limit?.clock.setTimer(limit.answerMsMax, () => overdue.abort());
  const signal =
    limit === undefined ? init.signal : firstOf(overdue.signal, ...(init.signal ? [init.signal] : [])).signal;
  try {
    return { response: await send(url + target, { ...init, ...(signal === undefined ? {} : { signal }) }) };
  } catch (cause) {
    if (init.signal?.aborted) throw cause;
    const why = overdue.signal.aborted ? `none within ${limit?.answerMsMax} ms` : reasonOf(cause, url);
    const error = new ApiError('Unavailable', `no answer from ${url}: ${why}`, { cause });
    return { error, unsent: neverSent(cause) };
  } finally {
    timer?.cancel();
  }
}

/** fetch puts the reason into `cause`. */
function reasonOf(error: unknown, url: string): string {
  if (!(error instanceof Error)) return String(error);
  const reason = error.cause instanceof Error ? error.cause.message || error.cause.name : error.message;
  const advice = tlsAdvice(error, url);
  const plain = reason.replace(openSslError, '$1').trim();
  return advice === undefined ? plain : `${plain}: ${advice}`;
}

/** `403D…:error:0A00010B:SSL routines:FUNCTION:wrong version number:FILE:77:`; only the reason is for people. */
const openSslError = /^[0-9A-F]+:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+):[^]*$/;

const unsentCode =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|EADDRNOTAVAIL|UND_ERR_CONNECT_TIMEOUT|.*CERT.*|UNABLE_TO_.*)$/;

/** Whether there was no connection to send it on. */
function neverSent(error: unknown): boolean {
  for (let each: unknown = error; each instanceof Error; each = each.cause) {
    if ('code' in each && typeof each.code === 'string' && unsentCode.test(each.code)) return true;
  }
  return false;
}
