// The metadata service of a NAT network: HTTP for guests alone. Who asks is known by the source address, which is believed because the network
// pins it to the guest's own interface; never by anything that a request says. What a guest can make it hold is bounded.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { answerMetadata, type GuestMetadata } from './metadata.ts';
import { createMetadataTokens, tokenLifetimeSecondsMax } from './metadata-tokens.ts';
import { createRateLimit } from './rate-limit.ts';

export type MetadataTokenPolicy = 'required' | 'optional';

export interface MetadataServerOptions {
  /** The guest that is pinned to this address; undefined: none. */
  readonly guestAt: (address: string) => string | undefined;
  /** Undefined: nothing is known of it (yet). */
  readonly metadataOf: (instanceId: string) => Promise<GuestMetadata | undefined>;
  /** `optional`: clients of 2009 know no tokens. */
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

/** What guests ask, whatever it leads to. */
export const metadataAddress = '169.254.169.254';
const headerBytesMax = 8192;
const connectionsOfOneMax = 16; // cloud-init has one or two
const tokenPath = '/latest/api/token';
const lifetimeHeader = 'x-aws-ec2-metadata-token-ttl-seconds';
const tokenHeader = 'x-aws-ec2-metadata-token';
// cloud-init asks some thirty times in a boot; a guest that asks all the time costs this much and no more.
const rate = { callsPerSecond: 20, callsAtOnceMax: 200 };

/** Listens on any free port of `address`; the network leads guests there. */
export async function serveMetadata(address: string, options: MetadataServerOptions): Promise<MetadataServer> {
  const { guestAt, clock, log } = options;
  const tokens = createMetadataTokens(options);
  const limit = createRateLimit({ clock, ...rate });
  const connections = new Map<string, number>();

  const server = createServer(
    { maxHeaderSize: headerBytesMax, headersTimeout: 5000, requestTimeout: 10_000, keepAliveTimeout: 5000 },
    (request, response) => {
      answer(request)
        .catch((error: unknown): Answer => {
          log.warn('cannot answer a guest that asks for its metadata', { error: describeError(error) });
          return { status: 500, body: 'the metadata of this guest cannot be read now\n' };
        })
        .then((said) => say(request, response, said))
        .catch(() => request.socket.destroy()); // it has gone
    },
  );

  const answer = async (request: IncomingMessage): Promise<Answer> => {
    const from = request.socket.remoteAddress ?? '';
    const instanceId = guestAt(from);
    if (instanceId === undefined) return { status: 404, body: 'there is no guest at this address\n' };
    if (!limit.take(instanceId)) return { status: 429, body: 'too many requests\n' };
    // A name that leads here would let a web page in the guest's browser read what is answered.
    const { host } = request.headers;
    if (host !== undefined && host !== metadataAddress && host !== `${metadataAddress}:80`) {
      return { status: 400, body: `ask for http://${metadataAddress}/, by this address\n` };
    }
    const path = (request.url ?? '').replace(/\?.*$/s, '');
    if (path === tokenPath) return giveToken(instanceId, request);
    if (request.method !== 'GET' && request.method !== 'HEAD') return notAllowed('GET, HEAD');
    const token = request.headers[tokenHeader];
    if (token === undefined && options.tokens === 'required') {
      return { status: 401, body: `a token is required: PUT ${tokenPath} gives one\n` };
    }
    if (token !== undefined && (typeof token !== 'string' || !tokens.good(instanceId, token))) {
      return { status: 401, body: 'this token is not good here, or no longer\n' };
    }
    const metadata = await options.metadataOf(instanceId);
    if (metadata === undefined) return nothingHere;
    const body = answerMetadata({ ...metadata, address: from }, path);
    return body === undefined ? nothingHere : { status: 200, body };
  };

  const giveToken = (instanceId: string, { method, headers }: IncomingMessage): Answer => {
    if (method !== 'PUT') return notAllowed('PUT');
    // As EC2 does: a request that some proxy in the guest passed on must not get a token out.
    if (headers['x-forwarded-for'] !== undefined) return { status: 403, body: 'a token is not given to a proxy\n' };
    const said = headers[lifetimeHeader];
    const seconds = typeof said === 'string' && /^[0-9]{1,5}$/.test(said) ? Number(said) : 0;
    if (seconds < 1 || seconds > tokenLifetimeSecondsMax) {
      return { status: 400, body: `${lifetimeHeader} must be a number from 1 to ${tokenLifetimeSecondsMax}\n` };
    }
    return {
      status: 200,
      body: tokens.give(instanceId, seconds),
      headers: { [lifetimeHeader]: String(seconds) },
    };
  };

  server.on('connection', (socket: Socket) => {
    const from = socket.remoteAddress ?? '';
    const count = (connections.get(from) ?? 0) + 1;
    if (guestAt(from) === undefined || count > connectionsOfOneMax) return void socket.destroy();
    connections.set(from, count);
    socket.once('close', () => {
      const left = (connections.get(from) ?? 1) - 1;
      if (left === 0) connections.delete(from);
      else connections.set(from, left);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port: 0, host: address }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  server.on('error', (error) => log.warn('the metadata service cannot take a connection', { error: error.message }));
  const told = server.address();
  return {
    port: typeof told === 'object' && told !== null ? told.port : 0,
    forget: limit.forget,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const nothingHere: Answer = { status: 404, body: 'there is nothing here\n' };
const notAllowed = (allow: string): Answer => ({ status: 405, body: 'not with this method\n', headers: { allow } });

function say(request: IncomingMessage, response: ServerResponse, { status, body, headers }: Answer): void {
  // Nothing that is asked here has a body: one that comes is not read.
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
