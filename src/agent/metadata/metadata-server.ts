// The metadata service of a NAT network: HTTP for guests only. A guest is identified by its source address, which the network pins to the guest's
// own interface, and never by the content of a request. Connections and requests of one guest are limited.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { answerMetadata, type GuestMetadata } from './metadata.ts';
import { createMetadataTokens, type MetadataTokens, tokenLifetimeSecondsMax } from './metadata-tokens.ts';
import { createRateLimit, type RateLimit } from './rate-limit.ts';

export type MetadataTokenPolicy = 'required' | 'optional';

export interface MetadataServerOptions {
  /** The guest that is pinned to this address; undefined: there is none. */
  readonly guestAt: (address: string) => string | undefined;
  /** Undefined: the guest has no metadata (yet). */
  readonly metadataOf: (instanceId: string) => Promise<GuestMetadata | undefined>;
  /** `optional` also serves clients of 2009, which use no tokens. */
  readonly tokens: MetadataTokenPolicy;
  readonly clock: Clock;
  readonly log: Logger;
  readonly randomSecret: (length: number) => Buffer;
}

export interface MetadataServer {
  readonly port: number;
  forget(instanceId: string): void;
  close(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The address that guests use. */
export const metadataAddress = '169.254.169.254';
const headerBytesMax = 8192;
const connectionsOfOneMax = 16; // cloud-init has one or two
const tokenPath = '/latest/api/token';
const lifetimeHeader = 'x-aws-ec2-metadata-token-ttl-seconds';
const tokenHeader = 'x-aws-ec2-metadata-token';
// cloud-init sends about thirty requests in a boot.
const rate = { callsPerSecond: 20, callsAtOnceMax: 200 };

/** Listens on any free port of `address`; the network forwards guests to it. */
export async function serveMetadata(address: string, options: MetadataServerOptions): Promise<MetadataServer> {
  const { guestAt, log } = options;
  const service = new MetadataService(options);
  const connections = new Map<string, number>();
  const server = createServer(
    { maxHeaderSize: headerBytesMax, headersTimeout: 5000, requestTimeout: 10_000, keepAliveTimeout: 5000 },
    (request, response) => void service.handle(request, response),
  );
  server.on('connection', (socket: Socket) => limitConnections(socket, { guestAt, connections }));
  const port = await listen(server, address);
  server.on('error', (error) => log.warn('the metadata service cannot take a connection', { error: error.message }));
  return {
    port,
    forget: (instanceId) => service.forget(instanceId),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The port that the server listens on. */
async function listen(server: Server, address: string): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port: 0, host: address }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const bound = server.address();
  return typeof bound === 'object' && bound !== null ? bound.port : 0;
}

/** `connections`: the number of open connections by address. */
function limitConnections(
  socket: Socket,
  {
    guestAt,
    connections,
  }: { readonly guestAt: MetadataServerOptions['guestAt']; readonly connections: Map<string, number> },
): void {
  const from = socket.remoteAddress ?? '';
  const count = (connections.get(from) ?? 0) + 1;
  if (guestAt(from) === undefined || count > connectionsOfOneMax) return void socket.destroy();
  connections.set(from, count);
  socket.once('close', () => {
    const left = (connections.get(from) ?? 1) - 1;
    if (left === 0) connections.delete(from);
    else connections.set(from, left);
  });
}

class MetadataService {
  readonly #options: MetadataServerOptions;
  readonly #tokens: MetadataTokens;
  readonly #limit: RateLimit;

  constructor(options: MetadataServerOptions) {
    this.#options = options;
    this.#tokens = createMetadataTokens(options);
    this.#limit = createRateLimit({ clock: options.clock, ...rate });
  }

  forget(instanceId: string): void {
    this.#limit.forget(instanceId);
  }

  /** Never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const answer = await this.#answer(request).catch((error: unknown): Answer => {
      const { log } = this.#options;
      log.warn('cannot answer a guest that asks for its metadata', { error: describeError(error) });
      return { status: 500, body: 'the metadata of this guest cannot be read now\n' };
    });
    try {
      send(request, response, answer);
    } catch {
      request.socket.destroy(); // the guest has closed the connection
    }
  }

  async #answer(request: IncomingMessage): Promise<Answer> {
    const from = request.socket.remoteAddress ?? '';
    const instanceId = this.#options.guestAt(from);
    if (instanceId === undefined) return { status: 404, body: 'there is no guest at this address\n' };
    if (!this.#limit.take(instanceId)) return { status: 429, body: 'too many requests\n' };
    // Another host name could come from a web page in the guest's browser (DNS rebinding), which must not read the answer.
    const { host } = request.headers;
    if (host !== undefined && host !== metadataAddress && host !== `${metadataAddress}:80`) {
      return { status: 400, body: `ask for http://${metadataAddress}/, by this address\n` };
    }
    const path = (request.url ?? '').replace(/\?.*$/s, '');
    if (path === tokenPath) return this.#giveToken(instanceId, request);
    if (request.method !== 'GET' && request.method !== 'HEAD') return notAllowed('GET, HEAD');
    const refusal = this.#refuse(instanceId, request.headers[tokenHeader]);
    if (refusal !== undefined) return refusal;
    const metadata = await this.#options.metadataOf(instanceId);
    if (metadata === undefined) return nothingHere;
    const body = answerMetadata({ ...metadata, address: from }, path);
    return body === undefined ? nothingHere : { status: 200, body };
  }

  /** Undefined: the request may be answered with this token. */
  #refuse(instanceId: string, token: string | string[] | undefined): Answer | undefined {
    if (token === undefined) {
      if (this.#options.tokens !== 'required') return undefined;
      return { status: 401, body: `a token is required: PUT ${tokenPath} gives one\n` };
    }
    if (typeof token === 'string' && this.#tokens.good(instanceId, token)) return undefined;
    return { status: 401, body: 'this token is not good here, or no longer\n' };
  }

  #giveToken(instanceId: string, { method, headers }: IncomingMessage): Answer {
    if (method !== 'PUT') return notAllowed('PUT');
    // As in EC2: a request that a proxy in the guest passed on gets no token.
    if (headers['x-forwarded-for'] !== undefined) return { status: 403, body: 'a token is not given to a proxy\n' };
    const said = headers[lifetimeHeader];
    const seconds = typeof said === 'string' && /^[0-9]{1,5}$/.test(said) ? Number(said) : 0;
    if (seconds < 1 || seconds > tokenLifetimeSecondsMax) {
      return { status: 400, body: `${lifetimeHeader} must be a number from 1 to ${tokenLifetimeSecondsMax}\n` };
    }
    return {
      status: 200,
      body: this.#tokens.give(instanceId, seconds),
      headers: { [lifetimeHeader]: String(seconds) },
    };
  }
}

const nothingHere: Answer = { status: 404, body: 'there is nothing here\n' };
const notAllowed = (allow: string): Answer => ({ status: 405, body: 'not with this method\n', headers: { allow } });

function send(request: IncomingMessage, response: ServerResponse, { status, body, headers }: Answer): void {
  // No request here needs a body, so a body is not read.
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined;
  const unread = hasBody && request.headers['content-length'] !== '0';
  const bytes = Buffer.from(body);
  response.writeHead(status, {
    'content-type': 'text/plain',
    'content-length': bytes.length,
    'cache-control': 'no-store',
    ...(unread ? { connection: 'close' } : {}),
    ...headers,
  });
  response.end(request.method === 'HEAD' ? undefined : bytes);
  if (unread) response.once('finish', () => request.socket.destroySoon());
}
