// A server on loopback for tests of what calls other systems: it answers what the test says, and keeps what it was asked.

import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Asked {
  /** `GET /path?query`. */
  readonly what: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export type Answer = (asked: Asked, response: ServerResponse) => void;

export class TestServer {
  readonly asked: Asked[] = [];
  answer: Answer;
  readonly #server: Server;

  constructor(answer: Answer) {
    this.answer = answer;
    const listener: RequestListener = (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { method, url, headers } = request;
        const asked = { what: `${method} ${url}`, headers, body: Buffer.concat(chunks).toString() };
        this.asked.push(asked);
        this.answer(asked, response);
      });
    };
    this.#server = createServer(listener);
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await once(this.#server.close(), 'close');
  }
}

export function reply(status: number, body: unknown = {}, headers: Readonly<Record<string, string>> = {}): Answer {
  return (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
}
