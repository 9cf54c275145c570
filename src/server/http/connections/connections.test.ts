import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import type { LogFields, Logger } from '../../../base/log.ts';
import { createManualClock } from '../../../base/manual-clock.ts';
import { startTestServer } from '../../testing.ts';
import { connectionLimits, Connections } from './connections.ts';

describe('how many connections may be open', () => {
  it.each([
    // an eighth of the files, from 64 to 1,024, is for others; half of what is left for those without a token
    ['1,500 files', 1_500, { openMax: 1_312, unauthenticatedMax: 656 }],
    ['64 files', 64, { openMax: 16, unauthenticatedMax: 8 }],
    ['a million files', 1_048_576, { openMax: 1_047_552, unauthenticatedMax: 16_384 }],
    ['files without limit', Number.POSITIVE_INFINITY, { openMax: Infinity, unauthenticatedMax: 16_384 }],
    ['a limit that is not known', undefined, { openMax: 3_584, unauthenticatedMax: 1_792 }],
  ])('with %s', (_, filesMax, limits) => {
    expect(connectionLimits(filesMax)).toEqual(limits);
  });
});

const ended: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

/** Resolves when it is open on both sides; `served` is the server's side. */
async function opened(server: Server): Promise<{ client: Socket; served: Socket }> {
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
  ended.push(() => client.destroy());
  const [served] = (await once(server, 'connection')) as [Socket];
  return { client, served };
}

async function guarded(limits: { openMax: number; unauthenticatedMax: number }) {
  const lines: { message: string; fields: LogFields | undefined }[] = [];
  const note = (message: string, fields?: LogFields): void => void lines.push({ message, fields });
  const log: Logger = { debug: note, info: note, warn: note, error: note, with: () => log };
  const clock = createManualClock();
  const connections = new Connections({ limits, clock, log });
  const server = createServer((socket) => connections.opened(socket)).listen(0, '127.0.0.1');
  ended.push(() => server.close());
  await once(server, 'listening');
  return { connections, clock, lines, open: () => opened(server) };
}

describe('connections', () => {
  it('without a token are closed from the oldest idle one on, when there are too many', async () => {
    const { connections, open } = await guarded({ openMax: 10, unauthenticatedMax: 2 });
    const asking = await open();
    let answered = (): void => {};
    connections.busy(asking.served, (over) => (answered = over));
    const idle = await open();
    const closed = once(idle.client, 'close');
    const newest = await open();
    await closed;
    expect(newest.served.destroyed || asking.served.destroyed).toBe(false);
    answered();
    const closedToo = once(newest.client, 'close'); // idle for longer than the one that was just answered
    await open();
    await closedToo;
    expect(connections).toMatchObject({ unauthenticated: 2, authenticated: 0 });
    expect(connections.dropped('unauthenticated')).toBe(2);
  });

  it('with a token stay, and have the room that others may not take', async () => {
    const { connections, open } = await guarded({ openMax: 4, unauthenticatedMax: 2 });
    const trusted = [];
    for (let i = 0; i < 3; i++) {
      const { served } = await open();
      connections.authenticate(served);
      trusted.push(served);
    }
    const stranger = await open();
    const closed = once(stranger.client, 'close');
    const last = await open();
    await closed;
    connections.authenticate(last.served);
    const refused = await open();
    await once(refused.client, 'close');
    expect([...trusted, last.served].some(({ destroyed }) => destroyed)).toBe(false);
    expect(connections).toMatchObject({ authenticated: 4, unauthenticated: 0 });
    expect(connections.dropped('full')).toBe(2);
  });

  it('that are closed for it are logged at most every ten seconds, with their number', async () => {
    const { lines, clock, open } = await guarded({ openMax: 10, unauthenticatedMax: 1 });
    for (let i = 0; i < 4; i++) await open();
    expect(lines).toEqual([
      { message: expect.stringContaining('without a token'), fields: expect.objectContaining({ count: 1 }) },
    ]);
    clock.advance(10_000);
    await open();
    expect(lines[1]?.fields).toMatchObject({ count: 3, remoteAddress: '127.0.0.1', unauthenticatedMax: 1 });
  });
});

it('a server answers while more idle connections come than it may hold, and counts what it closes', async () => {
  const server = await startTestServer({ limits: { openMax: 60, unauthenticatedMax: 20 } });
  ended.push(() => server.close());
  const { port } = new URL(server.url);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  ended.push(() => agent.destroy());
  const ask = async (): Promise<{ status: number | undefined; port: number | undefined }> => {
    const asked = httpRequest({ port, agent, path: '/v1/hosts', headers: { authorization: 'Bearer operator' } }).end();
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    const localPort = response.socket.localPort;
    await text(response);
    return { status: response.statusCode, port: localPort };
  };
  const first = await ask();
  const closed: Promise<unknown>[] = [];
  for (let i = 0; i < 50; i++) {
    const idle = connect(Number(port), '127.0.0.1').on('error', () => {});
    ended.push(() => idle.destroy());
    closed.push(once(idle, 'close'));
    await once(idle, 'connect');
  }
  await Promise.all(closed.slice(0, 30));
  expect(await ask()).toEqual({ status: 200, port: first.port }); // on the same connection
  const metrics = await (
    await fetch(`${server.url}/metrics`, { headers: { authorization: 'Bearer operator' } })
  ).text();
  const dropped = Number(/berth_connections_dropped_total\{reason="unauthenticated"\} (\d+)/.exec(metrics)?.[1]);
  expect(dropped).toBeGreaterThanOrEqual(30);
  expect(metrics).toContain('berth_connections{authenticated="true"} 2');
  expect(metrics).toContain('berth_connections_max{authenticated="false"} 20');
});
