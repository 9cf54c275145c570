import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Clock } from '../../../base/clock.ts';
import { createManualClock } from '../../../base/manual-clock.ts';
import { systemClock } from '../../../base/system.ts';
import { SlowRequests } from './slow-requests.ts';

function scene() {
  const clock = createManualClock();
  const requests = new SlowRequests({ clock });
  const socket = { destroyed: false, bytesRead: 0, paused: false, isPaused: () => socket.paused };
  let refused = false;
  return {
    requests,
    socket,
    expire: () => requests.expired(socket, { slowMsMax: 60_000, refuse: () => (refused = true) }),
    /** A look every 10 s. */
    isRefusedAfter(seconds: number, between = (): void => {}): boolean {
      for (let i = 0; i < seconds / 10; i++) {
        between();
        clock.advance(10_000);
      }
      return refused;
    },
  };
}

describe('a request that is late', () => {
  it('is refused while its headers are missing, also after a whole one on the same connection', () => {
    const first = scene();
    first.expire();
    expect(first.isRefusedAfter(10)).toBe(true);
    const second = scene();
    second.requests.begun(second.socket, { complete: true });
    second.expire();
    expect(second.isRefusedAfter(10)).toBe(true);
  });

  it('is refused when its body comes too slowly: less than 64 KiB in 30 s', () => {
    const { requests, socket, expire, isRefusedAfter } = scene();
    requests.begun(socket, { complete: false });
    expire();
    const drip = (): void => void (socket.bytesRead += 1_024);
    expect(isRefusedAfter(20, drip)).toBe(false);
    expect(isRefusedAfter(10, drip)).toBe(true);
  });

  it('is waited for while this server does not read it, and then as long as any other', () => {
    const { requests, socket, expire, isRefusedAfter } = scene();
    requests.begun(socket, { complete: false });
    socket.paused = true;
    expire();
    expect(isRefusedAfter(600)).toBe(false);
    socket.paused = false;
    expect(isRefusedAfter(20)).toBe(false);
    expect(isRefusedAfter(10)).toBe(true);
  });

  it('is waited for while enough of it comes: a slow disk takes an upload in small pieces', () => {
    const { requests, socket, expire, isRefusedAfter } = scene();
    requests.begun(socket, { complete: false });
    expire();
    expect(isRefusedAfter(600, () => (socket.bytesRead += 64 * 1024))).toBe(false);
  });

  it('is forgotten when it is whole, when another has come whole, and when its connection is closed', () => {
    const whole = scene();
    const request = { complete: false };
    whole.requests.begun(whole.socket, request);
    whole.expire();
    request.complete = true;
    expect(whole.isRefusedAfter(60)).toBe(false);
    const other = scene();
    other.expire();
    other.requests.begun(other.socket, { complete: true });
    expect(other.isRefusedAfter(60)).toBe(false);
    const closed = scene();
    closed.expire();
    closed.socket.destroyed = true;
    expect(closed.isRefusedAfter(60)).toBe(false);
  });
});

it("lets Node's server take a body that its handler reads long after the time for a request", async () => {
  const slowMsMax = 60;
  let looks = 0;
  const read = Promise.withResolvers<void>();
  const clock: Clock = {
    ...systemClock,
    setTimer: (delayMs, fire, options) => {
      looks += 1;
      if (looks === 12) read.resolve();
      return systemClock.setTimer(delayMs, fire, options);
    },
  };
  const requests = new SlowRequests<Socket>({ clock });
  const times = { requestTimeout: slowMsMax, headersTimeout: slowMsMax, connectionsCheckingInterval: 10 };
  const server = createServer(times, (request, response) => {
    requests.begun(request.socket, request);
    void read.promise.then(() => request.resume().once('end', () => response.end()));
  });
  server.on('clientError', (_, socket: Socket) =>
    requests.expired(socket, { slowMsMax, refuse: () => socket.destroy() }),
  );
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on TCP
  const sent = httpRequest({ port, method: 'POST', agent: false });
  sent.end(Buffer.alloc(16 * 1024 * 1024));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  response.resume();
});
