// The API of a forge, as far as it is used: the head of a branch, and commit statuses. Requests go to the configured address
// only, never to one from a payload, and follow no redirection: each carries a token.

import type { Clock } from '../../../base/clock.ts';
import { isRecord } from '../../../base/is-record.ts';
import { describeError } from '../../../base/log.ts';
import type { ForgeEvent } from '../../../core/operations/jobs/webhook-event.ts';
import type { ConfiguredHook } from './forge-config.ts';

export interface ForgeApiParts {
  readonly fetch: typeof fetch;
  readonly clock: Clock;
}

export interface ForgeAnswer {
  /** 0: no answer came; `text` says why. */
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly text: string;
}

interface ForgeRequest {
  readonly method: 'GET' | 'POST';
  /** Below the API's address. */
  readonly path: string;
  readonly json?: unknown;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

const textLengthMax = 256 * 1024;

/** Resolves with whatever comes; never rejects. */
export async function askForge(
  parts: ForgeApiParts,
  { apiUrl, forge, token }: ConfiguredHook,
  { method, path, json, timeoutMs, signal }: ForgeRequest,
): Promise<ForgeAnswer> {
  const late = new AbortController();
  const timer = parts.clock.setTimer(timeoutMs, () => late.abort(new Error(`no answer within ${timeoutMs} ms`)), {
    background: true,
  });
  try {
    const response = await parts.fetch(`${apiUrl}/${path}`, {
      method,
      redirect: 'manual',
      signal: signal === undefined ? late.signal : AbortSignal.any([late.signal, signal]),
      headers: {
        accept: forge === 'github' ? 'application/vnd.github+json' : 'application/json',
        'user-agent': 'berth', // GitHub refuses requests without
        ...(forge === 'github' ? { 'x-github-api-version': '2022-11-28' } : {}),
        ...(token === undefined ? {} : { authorization: `${forge === 'github' ? 'Bearer' : 'token'} ${token}` }),
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
    return { status: response.status, headers: response.headers, text: await textOf(response) };
  } catch (error) {
    return { status: 0, headers: new Headers(), text: whyFailed(error) };
  } finally {
    timer.cancel();
  }
}

/** `fetch failed` says nothing; its cause does. */
function whyFailed(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return describeError(cause ?? error);
}

async function textOf({ body }: Response): Promise<string> {
  if (body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  for await (const piece of body) {
    text += decoder.decode(piece, { stream: true });
    if (text.length > textLengthMax) throw new Error(`the answer is over ${textLengthMax} characters`);
  }
  return text;
}

/** Forgejo waits 5 s for the answer to a webhook, and GitHub 10 s. */
const headTimeoutMs = 3_000;

/** The commit that a branch or pull request is at; undefined: not known. */
export async function askHead(
  parts: ForgeApiParts,
  hook: ConfiguredHook,
  { repository, ref, branch, event }: Pick<ForgeEvent, 'repository' | 'ref' | 'branch' | 'event'>,
): Promise<string | undefined> {
  if (hook.token === undefined) return undefined;
  const place =
    event === 'push'
      ? `branches/${branch.split('/').map(encodeURIComponent).join('/')}`
      : `pulls/${ref.split('/')[2] ?? ''}`;
  const answer = await askForge(parts, hook, {
    method: 'GET',
    path: `repos/${repository}/${place}`,
    timeoutMs: headTimeoutMs,
  });
  if (answer.status !== 200) return undefined;
  const body = jsonOf(answer.text);
  const commit = isRecord(body) ? body[event === 'push' ? 'commit' : 'head'] : undefined;
  if (!isRecord(commit)) return undefined;
  const sha = commit['sha'] ?? commit['id']; // GitHub; Forgejo
  return typeof sha === 'string' && /^[0-9a-f]{40}([0-9a-f]{24})?$/.test(sha) ? sha : undefined;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // a proxy's page, not the forge's answer
  }
}
