// Sends one message to a receiver. No redirects, bounded in time and in what is read; a receiver that drips is cut off.

import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Clock } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import { portOf, type ReceiverGuard } from './receiver-guard.ts';
import { retryAfterMsOf } from './retry.ts';

export interface Posted {
  /** Of the answer; absent: there was none. */
  readonly status?: number;
  readonly retryAfterMs?: number;
  /** Why it failed; absent: the receiver has taken it. */
  readonly error?: string;
}

export interface PostCall {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
}

export type Post = (call: PostCall) => Promise<Posted>;

const timeoutMs = 20_000;
const answerBytesMax = 65_536;
const headerBytesMax = 16_384;

/** As Node's own, which other parts of the process use: a connection of theirs is to an address that was not checked. */
const agentOptions = { keepAlive: true, scheduling: 'lifo', timeout: 5_000 } as const;

interface Sending {
  readonly guard: ReceiverGuard;
  readonly clock: Clock;
  readonly http: HttpAgent;
  readonly https: HttpsAgent;
}

export function createPost(guard: ReceiverGuard, clock: Clock): Post {
  const sending = { guard, clock, http: new HttpAgent(agentOptions), https: new HttpsAgent(agentOptions) };
  return async (call) => {
    try {
      return await send(call, guard.checkedUrl(call.url), sending);
    } catch (error) {
      return { error: describeError(error).slice(0, 200) };
    }
  };
}

function send({ headers, body, signal }: PostCall, url: URL, { guard, clock, http, https }: Sending): Promise<Posted> {
  const secure = url.protocol === 'https:';
  return new Promise((resolve, reject) => {
    const outgoing = (secure ? httpsRequest : httpRequest)(url, {
      method: 'POST',
      agent: secure ? https : http,
      headers: { ...headers, 'content-length': Buffer.byteLength(body) },
      lookup: guard.lookupFor(url),
      maxHeaderSize: headerBytesMax,
      signal,
    });
    const timer = clock.setTimer(timeoutMs, () =>
      outgoing.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)),
    );
    const settle = (posted: Posted): void => {
      timer.cancel();
      resolve(posted);
    };
    outgoing.once('error', (error) => {
      timer.cancel();
      reject(error);
    });
    outgoing.once('socket', (socket) =>
      socket.once(secure ? 'secureConnect' : 'connect', () => {
        const why = guard.whyNot(socket.remoteAddress ?? '', portOf(url), secure);
        if (why !== undefined) outgoing.destroy(new Error(why));
      }),
    );
    outgoing.once('response', (answer) => {
      const { statusCode: status = 0 } = answer;
      let left = answerBytesMax;
      answer.on('data', (bytes: Buffer) => {
        left -= bytes.length;
        if (left < 0) answer.destroy();
      });
      answer.on('error', () => {});
      answer.once('close', () => {
        const retryAfterMs = retryAfterMsOf(answer.headers['retry-after'], clock.nowMs());
        settle({
          status,
          ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
          ...(status >= 200 && status < 300 ? {} : { error: `the receiver answered ${status}` }),
        });
      });
    });
    outgoing.end(body);
  });
}
