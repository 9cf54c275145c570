import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type ClientHttp2Session, connect, constants } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { GuestState } from '../../api/agent-protocol.ts';
import type { Clock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { createManualClock } from '../../base/manual-clock.ts';
import { seededPrng } from '../../base/prng.ts';
import { randomSecret, systemClock } from '../../base/system.ts';
import { createExecSessions } from '../access/exec-sessions.ts';
import type { Driver } from '../drivers/driver.ts';
import { DriverError } from '../host/driver-error.ts';
import { holdLink } from './link.ts';

const instanceId = `inst_${'a'.repeat(26)}`;
const otherId = `inst_${'b'.repeat(26)}`;

/** A driver that holds consoles and nothing else. */
function consoleDriver() {
  const guests = new Map<string, { state: GuestState; text: string; start: number }>();
  const listeners = new Set<(instanceId: string) => void>();
  const changed = (id: string): void => {
    for (const listener of listeners) listener(id);
  };
  const unused = async (): Promise<never> => {
    throw new Error('not used here');
  };
  const driver: Driver = {
    name: 'console',
    fingerprint: async () => ({ available: true }),
    recover: async () => {},
    guests: () =>
      [...guests].map(([id, { state }]) => ({
        instanceId: id,
        incarnation: 1,
        state,
        ready: true,
        ports: [],
        phases: [],
      })),
    watch(listener, signal) {
      listeners.add(listener);
      signal.addEventListener('abort', () => listeners.delete(listener));
    },
    create: unused,
    start: unused,
    stop: unused,
    remove: unused,
    async readLog(id, offset, limit) {
      const guest = guests.get(id);
      if (!guest) throw new DriverError('NoSuchGuest', `no guest ${id}`);
      const from = Math.max(offset, guest.start);
      const all = new TextEncoder().encode(guest.text);
      return { offset: from, data: all.subarray(from, from + limit), size: all.length };
    },
    close: async () => {},
  };
  return {
    driver,
    listeners,
    boot: (id: string, text: string, start = 0) => void guests.set(id, { state: 'running', text, start }),
    write(id: string, text: string) {
      const guest = guests.get(id);
      if (guest) guest.text += text;
      changed(id);
    },
    end(id: string) {
      const guest = guests.get(id);
      if (guest) guest.state = 'exited';
      changed(id);
    },
    remove(id: string) {
      guests.delete(id);
      changed(id);
    },
  };
}

/** The control plane's end of the line, over real sockets. */
async function listen() {
  const waiting: ((session: ClientHttp2Session) => void)[] = [];
  const sessions: ClientHttp2Session[] = [];
  const seen = { url: '', authorization: '', upgrade: '', refuse: 0 };
  let hearMute: ((socket: Duplex) => void) | undefined;
  const server: Server = createServer((_request, response) => response.writeHead(426).end());
  server.on('upgrade', (request, socket) => {
    Object.assign(seen, {
      url: request.url,
      authorization: request.headers.authorization,
      upgrade: request.headers.upgrade,
    });
    if (seen.refuse > 0) {
      seen.refuse -= 1;
      return void socket.end('HTTP/1.1 409 Conflict\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
    }
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: berth-agent/1\r\n\r\n');
    if (hearMute) return hearMute(socket.on('error', () => {}));
    const session = connect('http://agent', { createConnection: () => socket });
    session.on('error', () => {});
    sessions.push(session);
    waiting.shift()?.(session);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    seen,
    sessions,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    nextSession: () => new Promise<ClientHttp2Session>((resolve) => waiting.push(resolve)),
    /** The next line that is dialled; nothing is ever said on it. */
    nextMute: () => new Promise<Duplex>((resolve) => (hearMute = resolve)),
    async close() {
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** An answer in pieces: `more` resolves with all text read so far once that satisfies `until`. */
function ask(session: ClientHttp2Session, path: string, method = 'GET') {
  const stream = session.request({ ':path': path, ':method': method });
  const head = new Promise<Record<string, unknown>>((resolve) => stream.on('response', resolve));
  let text = '';
  let wake = (): void => {};
  stream.on('data', (data: Buffer) => {
    text += data.toString();
    wake();
  });
  stream.on('error', () => {});
  const ended = new Promise<string>((resolve) => stream.on('close', () => resolve(text)));
  return {
    stream,
    head,
    ended,
    async until(wanted: string): Promise<void> {
      while (!text.includes(wanted)) await new Promise<void>((resolve) => (wake = resolve));
    },
  };
}

describe('the line to the control plane', () => {
  let plane: Awaited<ReturnType<typeof listen>>;
  let guests: ReturnType<typeof consoleDriver>;
  let held: Promise<void>;
  let session: ClientHttp2Session;
  let stop: AbortController;

  const hold = (clock: Clock): Promise<void> =>
    holdLink(
      {
        serverUrl: plane.url,
        token: 'secret',
        hostName: 'host-1',
        epoch: 7,
        routes: {
          drivers: [guests.driver],
          sessions: createExecSessions({ clock: systemClock, log: silentLogger, randomSecret }),
          clock: systemClock,
          log: silentLogger,
        },
        clock,
        prng: seededPrng(1),
        log: silentLogger,
      },
      stop.signal,
    );

  beforeEach(async () => {
    plane = await listen();
    guests = consoleDriver();
    stop = new AbortController();
    const opened = plane.nextSession();
    held = hold(systemClock);
    session = await opened;
  });
  afterEach(async () => {
    stop.abort();
    await held;
    await plane.close();
  });

  it('is dialled with the host, its session and its token', () => {
    expect(plane.seen).toMatchObject({
      url: '/v1/hosts/host-1/link?epoch=7',
      authorization: 'Bearer secret',
      upgrade: 'berth-agent/1',
    });
  });

  it('gives a console from an offset on, and says where it begins', async () => {
    guests.boot(instanceId, 'hello world');
    const answer = ask(session, `/guests/${instanceId}/log?offset=6`);
    expect(await answer.head).toMatchObject({ ':status': 200, 'berth-log-offset': '6' });
    expect(await answer.ended).toBe('world');
  });

  it('says where a console begins whose start was dropped', async () => {
    guests.boot(instanceId, 'hello world', 6);
    const answer = ask(session, `/guests/${instanceId}/log?offset=0`);
    expect(await answer.head).toMatchObject({ 'berth-log-offset': '6' });
    expect(await answer.ended).toBe('world');
  });

  it('answers an empty console with nothing', async () => {
    guests.boot(instanceId, '');
    const answer = ask(session, `/guests/${instanceId}/log`);
    expect(await answer.head).toMatchObject({ ':status': 200, 'berth-log-offset': '0' });
    expect(await answer.ended).toBe('');
  });

  it('gives no more than asked for', async () => {
    guests.boot(instanceId, 'hello world');
    expect(await ask(session, `/guests/${instanceId}/log?limit=5`).ended).toBe('hello');
  });

  it('follows a console until its guest has ended', async () => {
    guests.boot(instanceId, 'one ');
    const answer = ask(session, `/guests/${instanceId}/log?follow=true`);
    await answer.until('one');
    guests.write(instanceId, 'two ');
    await answer.until('two');
    guests.write(instanceId, 'three');
    guests.end(instanceId);
    expect(await answer.ended).toBe('one two three');
  });

  it('breaks off where the start of a console was dropped ahead of its reader, who asks again and hears where it begins', async () => {
    guests.boot(instanceId, 'one');
    const answer = ask(session, `/guests/${instanceId}/log?follow=true`);
    await answer.until('one');
    guests.boot(instanceId, 'one two three', 8);
    guests.write(instanceId, '!');
    expect(await answer.ended).toBe('one');
    expect(answer.stream.rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR);
    const again = ask(session, `/guests/${instanceId}/log?offset=3`);
    expect(await again.head).toMatchObject({ 'berth-log-offset': '8' });
    expect(await again.ended).toBe('three!');
  });

  it('follows a console until its guest is gone', async () => {
    guests.boot(instanceId, 'one');
    const answer = ask(session, `/guests/${instanceId}/log?follow=true`);
    await answer.until('one');
    guests.remove(instanceId);
    expect(await answer.ended).toBe('one');
  });

  it('stops following when nobody reads any more', async () => {
    guests.boot(instanceId, 'one');
    const answer = ask(session, `/guests/${instanceId}/log?follow=true`);
    await answer.until('one');
    expect(guests.listeners.size).toBe(1);
    answer.stream.close();
    await answer.ended;
    while (guests.listeners.size > 0) await new Promise((resolve) => setImmediate(resolve));
  });

  it('carries a large console whole, whatever one slow reader does', async () => {
    const large = 'x'.repeat(3_000_000);
    guests.boot(instanceId, large);
    guests.boot(otherId, 'quick');
    const slow = ask(session, `/guests/${instanceId}/log`);
    slow.stream.pause();
    expect(await ask(session, `/guests/${otherId}/log`).ended).toBe('quick');
    slow.stream.resume();
    expect((await slow.ended).length).toBe(large.length);
  });

  it.each([
    ['a guest that is not here', `/guests/${otherId}/log`, 404, 'NotFound'],
    ['something that is no id', '/guests/..%2f..%2fetc/log', 404, 'NotFound'],
    ['a path out of the guests', '/guests/../../etc/passwd', 404, 'NotFound'],
    ['an unknown route', '/shutdown', 404, 'NotFound'],
    ['a negative offset', `/guests/${instanceId}/log?offset=-1`, 400, 'InvalidRequest'],
    ['an offset that is no number', `/guests/${instanceId}/log?offset=1e3`, 400, 'InvalidRequest'],
    ['a follow that is neither', `/guests/${instanceId}/log?follow=yes`, 400, 'InvalidRequest'],
  ])('refuses %s', async (_, path, status, code) => {
    guests.boot(instanceId, 'hello');
    const answer = ask(session, path);
    expect(await answer.head).toMatchObject({ ':status': status });
    expect(JSON.parse(await answer.ended)).toMatchObject({ error: { code } });
  });

  it('refuses every method but GET', async () => {
    const answer = ask(session, `/guests/${instanceId}/log`, 'DELETE');
    expect(await answer.head).toMatchObject({ ':status': 405 });
  });

  describe('whose time stands still', () => {
    const pingMs = 10_000;
    let clock = createManualClock();
    beforeEach(() => (clock = createManualClock()));

    it('stays open while its pings are answered', async () => {
      guests.boot(instanceId, 'hello');
      const opened = plane.nextSession();
      const other = hold(clock);
      const line = await opened;
      for (let turn = 0; turn < 3; turn += 1) {
        await ask(line, `/guests/${instanceId}/log`).ended; // behind the answer to the last ping
        const pinged = once(line, 'ping');
        clock.advance(pingMs);
        await pinged;
      }
      expect(await ask(line, `/guests/${instanceId}/log`).ended).toBe('hello');
      stop.abort();
      await other;
    });

    it('is given up when a ping has no answer by the next', async () => {
      const opened = plane.nextMute();
      const other = hold(clock);
      const socket = await opened;
      await once(socket, 'data'); // the agent serves
      socket.resume();
      const ended = once(socket, 'end');
      clock.advance(pingMs);
      await new Promise((resolve) => setImmediate(resolve));
      expect(socket.readableEnded).toBe(false);
      clock.advance(pingMs);
      await ended;
      socket.destroy();
      stop.abort();
      await other;
    });
  });

  it('is opened again when it breaks, also after a refusal', async () => {
    guests.boot(instanceId, 'hello');
    plane.seen.refuse = 1;
    const next = plane.nextSession();
    session.destroy();
    expect(await ask(await next, `/guests/${instanceId}/log`).ended).toBe('hello');
  });
});
