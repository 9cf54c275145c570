// HTTP requests to one server, with its own idea of whom to trust and a client certificate where there is one. It follows no redirect:
// a token is for the server that was asked.

import { Agent as PlainAgent, type IncomingMessage, request as requestPlain } from 'node:http';
import { Agent, request as requestSecure } from 'node:https';
import { text } from 'node:stream/consumers';

/** PEM texts. */
export interface TlsTrust {
  /** The only authorities that are trusted; absent: those of Node. */
  readonly ca?: string;
  /** The certificate of the client, with its issuer. */
  readonly cert?: string;
  readonly key?: string;
}

interface Init {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly signal?: AbortSignal;
}

interface Response {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: AsyncIterable<Uint8Array>;
  text(): Promise<string>;
}

const idleMs = 30_000; // below the 72 s after which the server closes idle connections

/**
 * As fetch. `trust` is asked for each request: when it is another one, later requests use new connections. Sessions are not resumed, so
 * that a server proves itself each time.
 */
export class TlsFetch {
  readonly #trust: () => TlsTrust;
  readonly #plain = new PlainAgent({ keepAlive: true, timeout: idleMs });
  /** By origin: connections of one server are never used for another. */
  #agents = new Map<string, Agent>();
  #used: TlsTrust | undefined;

  constructor(trust: () => TlsTrust) {
    this.#trust = trust;
  }

  readonly fetch = (address: string, { method, headers, body, signal }: Init): Promise<Response> => {
    const url = new URL(address);
    const send = url.protocol === 'https:' ? requestSecure : requestPlain;
    const agent = url.protocol === 'https:' ? this.#agentFor(url.origin) : this.#plain;
    return new Promise((resolve, reject) => {
      const asked = send(url, { method, headers, agent, ...(signal ? { signal } : {}) }, (response) =>
        resolve(answerOf(response)),
      );
      asked.once('error', reject);
      asked.end(body);
    });
  };

  #agentFor(origin: string): Agent {
    const trust = this.#trust();
    if (trust !== this.#used) {
      this.#agents = new Map(); // streams of the earlier ones go on, and their idle connections time out
      this.#used = trust;
    }
    let agent = this.#agents.get(origin);
    if (!agent) {
      agent = new Agent({ keepAlive: true, timeout: idleMs, maxCachedSessions: 0, minVersion: 'TLSv1.2', ...trust });
      this.#agents.set(origin, agent);
    }
    return agent;
  }

  close(): void {
    this.#plain.destroy();
    for (const agent of this.#agents.values()) agent.destroy();
  }
}

function answerOf(response: IncomingMessage): Response {
  return {
    status: response.statusCode ?? 0,
    headers: { get: (name) => response.headers[name]?.toString() ?? null },
    body: response,
    text: () => text(response),
  };
}
