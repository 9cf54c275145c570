// Listens on a loopback address for the answer of a provider in the browser: one request, then it closes. Other requests, and those
// of pages that only guess the port, are turned away.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Clock } from '../../../base/clock.ts';
import { Interrupted } from '../../exit-codes.ts';
import { failed } from './provider.ts';

const waitMsMax = 5 * 60_000;
const path = '/callback';

type Read = (answer: URLSearchParams) => string;

export class LoopbackListener {
  readonly redirectUri: string;
  readonly #server: Server;
  readonly #clock: Clock;
  readonly #origin: string;
  /** The last page that was sent is with the browser. */
  #sent: Promise<unknown> = Promise.resolve();

  private constructor(server: Server, origin: string, clock: Clock) {
    this.#server = server;
    this.#clock = clock;
    this.#origin = origin;
    this.redirectUri = origin + path;
  }

  /** By address, because "localhost" may be another machine (RFC 8252, section 8.3). */
  static async open(clock: Clock): Promise<LoopbackListener> {
    for (const host of ['127.0.0.1', '::1']) {
      const server = createServer();
      try {
        await once(server.listen(0, host), 'listening');
      } catch {
        continue; // this machine may have only one of them
      }
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      return new LoopbackListener(server, `http://${host === '::1' ? '[::1]' : host}:${port}`, clock);
    }
    throw failed(
      'cannot listen on 127.0.0.1 or ::1 for the answer of the browser',
      'use --device, if the server allows it',
    );
  }

  /** What `read` returns of the first answer; what it throws is shown in the browser, too. */
  answer(read: Read, signal: AbortSignal): Promise<string> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.setTimer(waitMsMax, () => settle(() => reject(failed('no answer within 5 minutes'))));
      const interrupt = (): void => settle(() => reject(new Interrupted()));
      const settle = (finish: () => void): void => {
        timer.cancel();
        signal.removeEventListener('abort', interrupt);
        this.#server.removeAllListeners('request');
        finish();
      };
      signal.addEventListener('abort', interrupt);
      if (signal.aborted) interrupt();
      this.#server.on('request', (request, response) => {
        const answer = this.#answerIn(request);
        if (answer === undefined) return this.#send(response, { status: 404, text: 'There is nothing here.' });
        try {
          const code = read(answer);
          settle(() => resolve(code));
          this.#send(response, { status: 200, text: 'You can close this page and return to the terminal.' });
        } catch (error) {
          settle(() => reject(error));
          this.#send(response, { status: 400, text: 'The login failed. The terminal says why.' });
        }
      });
    });
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    await this.#sent;
    this.#server.closeAllConnections(); // browsers open some in advance, without a request
    await closed;
  }

  #answerIn({ method, url = '', headers: { host } }: IncomingMessage): URLSearchParams | undefined {
    const asked = URL.parse(url, this.#origin);
    // A page of another site that was led here by its own name has another host.
    if (method !== 'GET' || asked?.pathname !== path || `http://${host}` !== this.#origin) return undefined;
    return asked.searchParams;
  }

  #send(response: ServerResponse, { status, text }: { readonly status: number; readonly text: string }): void {
    this.#sent = once(response, 'close');
    response.writeHead(status, headers);
    response.end(`<!doctype html><title>Berth</title><h1>Berth</h1><p>${text}</p>\n`);
  }
}

const headers = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'",
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  connection: 'close',
};
