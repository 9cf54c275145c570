// A hostile host: it speaks HTTP/2 by hand on the line that it dialled. Whatever it does, the control plane must go on, other hosts must be
// reached, and nothing may be kept of what it sends.

import { once } from 'node:events';
import { createServer as createHttp2Server } from 'node:http2';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../base/log.ts';
import { createManualClock, type ManualClock } from '../../../base/manual-clock.ts';
import { AgentLinks } from './agent-link.ts';

const types = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goaway: 7,
  window: 8,
  continuation: 9,
  altsvc: 10,
  origin: 12,
} as const;

function frame(type: keyof typeof types | number, payload: Uint8Array, { flags = 0, stream = 0 } = {}): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(typeof type === 'number' ? type : types[type], 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

const empty = new Uint8Array();
const many = (count: number, one: Buffer): Buffer => Buffer.concat(Array.from({ length: count }, () => one));
const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const setting = (id: number, value: number): Buffer => {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(id);
  bytes.writeUInt32BE(value, 2);
  return bytes;
};
const ended = { flags: 0x4 }; // END_HEADERS
/** `:status: 200`, from HPACK's static table. */
const ok = Buffer.from([0x88]);
/** A header of that name with this many letters, not indexed. */
function header(name: string, length: number): Buffer {
  const value = Buffer.alloc(length, 'a');
  const lengthBytes = length < 127 ? [length] : [127, ((length - 127) & 127) | 128, (length - 127) >> 7];
  return Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), Buffer.from(lengthBytes), value]);
}
const origin = (text: string): Buffer => {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(text.length);
  return Buffer.concat([length, Buffer.from(text)]);
};

let clock: ManualClock;
let links: AgentLinks;
let hostile: Server;
/** What the hostile host does with its line at once, and what it sends when it is asked for something. */
let attack: (line: Socket) => void;
let answer: Buffer;
const honest = createHttp2Server((_request, response) => response.end('a console'));
const sockets = new Set<Socket>();

beforeEach(async () => {
  clock = createManualClock();
  links = new AgentLinks({ clock, log: silentLogger });
  attack = () => {};
  answer = Buffer.alloc(0);
  hostile = createServer((line) => {
    sockets.add(line);
    line.on('error', () => {});
    line.write(frame('settings', empty));
    attack(line);
    void requestOn(line).then(() => line.write(answer));
  });
  for (const server of [hostile, honest]) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  links.close();
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  for (const server of [hostile, honest]) await new Promise((resolve) => server.close(resolve));
});

function dial(host: string, server: { address(): unknown }): Socket {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  links.accept(host, socket, 1);
  return socket;
}

const never = new AbortController().signal;
async function ask(host: string): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of (await links.get(host, '/', never)).body) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

/** Resolves when a request has begun to come: the first frame with headers after the preface. */
async function requestOn(line: Socket): Promise<void> {
  let said = Buffer.alloc(0);
  let at = 24;
  await new Promise<void>((resolve) =>
    line.on('data', (piece: Buffer) => {
      said = Buffer.concat([said, piece]);
      for (; said.length >= at + 9; at += 9 + said.readUIntBE(at, 3)) if (said[at + 3] === types.headers) resolve();
    }),
  );
}

const closed = (line: Socket): Promise<void> => new Promise((resolve) => line.once('close', () => resolve()));

describe('a host that attacks on its own line loses it', () => {
  it.each<[string, Buffer]>([
    [
      'with other services',
      many(1_000, frame('altsvc', Buffer.concat([origin('https://a.example'), Buffer.from('h2=":1"')]))),
    ],
    ['with settings', many(10_000, frame('settings', setting(4, 65_535)))],
    ['with many settings in one frame', frame('settings', many(1_000, setting(0xff, 1)))],
    ['with pings', many(10_000, frame('ping', Buffer.alloc(8)))],
    ['with a ping that is too short', frame('ping', Buffer.alloc(7))],
    ['with a push', frame('push', Buffer.concat([u32(2), ok]), { flags: 0x4, stream: 1 })],
    ['with headers of streams that were not opened', many(1_000, frame('headers', ok, { ...ended, stream: 3 }))],
    ['with headers of streams of its own', frame('headers', ok, { ...ended, stream: 2 })],
    ['with resets of streams that were not opened', many(10_000, frame('reset', u32(8), { stream: 101 }))],
    ['with data of no stream', frame('data', Buffer.alloc(100))],
    ['with continuations of nothing', frame('continuation', ok, { ...ended, stream: 1 })],
    ['with a frame that is too large', frame('data', Buffer.alloc(20_000), { stream: 1 })],
    ['with windows that overflow', many(3, frame('window', u32(0x7f_ff_ff_ff)))],
    ['with a window of nothing', frame('window', u32(0))],
    ['with a window size that is too large', frame('settings', setting(4, 0xff_ff_ff_ff))],
    ['with push switched on', frame('settings', setting(2, 2))],
    ['with no HTTP/2', Buffer.from('HTTP/1.1 200 OK\r\n\r\n'.repeat(10))],
  ])('%s', async (_, bytes) => {
    attack = (line) => void line.write(bytes);
    await closed(dial('evil', hostile));
    dial('good', honest);
    expect(await ask('good')).toBe('a console');
  });
});

it.each([
  ['origins, which count with TLS only', many(100_000, frame('origin', origin('https://a.example')))],
  ['frames of unknown types', many(100_000, frame(0xfa, Buffer.alloc(10)))],
  ['priorities', many(100_000, frame('priority', Buffer.concat([u32(0), Buffer.alloc(1)]), { stream: 1 }))],
])('a host that floods its line with %s delays no other for long', async (_, bytes) => {
  attack = (line) => void line.write(bytes);
  dial('evil', hostile);
  dial('good', honest);
  expect(await ask('good')).toBe('a console');
});

describe('a host that attacks on a stream that it was asked on', () => {
  const ofStream = { ...ended, stream: 1 };
  const pairs = (count: number): Buffer =>
    Buffer.concat([ok, ...Array.from({ length: count }, () => header('x-a', 1))]);

  it.each<[string, Buffer]>([
    ['with 200 headers', frame('headers', pairs(200), ofStream)],
    [
      'with headers of over 16 KiB',
      Buffer.concat([
        frame('headers', ok, { stream: 1 }),
        frame('continuation', header('x-a', 8_000), { stream: 1 }),
        frame('continuation', header('x-a', 8_500), ofStream),
      ]),
    ],
    [
      'with headers without end',
      Buffer.concat([
        frame('headers', ok, { stream: 1 }),
        many(200, frame('continuation', header('x-a', 10_000), { stream: 1 })),
      ]),
    ],
    [
      'with headers that name a table entry that is not there',
      frame('headers', Buffer.from([0xff, 0xff, 0x7f]), ofStream),
    ],
    ['with a name in capitals', frame('headers', Buffer.concat([ok, header('X-A', 1)]), ofStream)],
    ['with no status', frame('headers', header('x-a', 1), ofStream)],
    ['with a reset', frame('reset', u32(2), { stream: 1 })],
    [
      'with a thousand interim answers',
      many(1_000, frame('headers', Buffer.from([0x08, 0x03, 0x31, 0x30, 0x33]), ofStream)),
    ],
    ['with a farewell', frame('goaway', Buffer.concat([u32(0), u32(0)]))],
    ['with silence', Buffer.alloc(0)],
  ])('%s is unreachable, and others are not', async (_, bytes) => {
    answer = bytes;
    dial('evil', hostile).on('error', () => {});
    const asked = expect(links.get('evil', '/evil-path', never)).rejects.toMatchObject({ code: 'HostUnreachable' });
    let over = false;
    void asked.then(() => (over = true));
    for (let turn = 0; !over; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      if (turn === 1_000) clock.advance(600_000); // an answer that does not come
    }
    await asked;
    dial('good', honest);
    expect(await ask('good')).toBe('a console');
  });

  it('has no more of its refusal read than a refusal needs', async () => {
    const data = many(10, frame('data', Buffer.alloc(16_000), { stream: 1 }));
    const status = Buffer.from([0x8d]); // 404
    answer = Buffer.concat([frame('headers', status, ofStream), data]);
    dial('evil', hostile);
    await expect(links.get('evil', '/evil-path', never)).rejects.toMatchObject({
      code: 'HostUnreachable',
      message: 'host "evil" gave no usable answer',
    });
  });
});

it('a line on which nothing comes back ends', async () => {
  const line = dial('mute', createMute());
  await once(line, 'connect');
  const gone = closed(line);
  for (let i = 0; i < 3; i++) {
    clock.advance(30_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await gone;
});

it('an honest line stays', async () => {
  const line = dial('good', honest);
  for (let i = 0; i < 5; i++) {
    expect(await ask('good')).toBe('a console'); // later than the answer to the ping before
    clock.advance(30_000);
  }
  expect(line.destroyed).toBe(false);
});

/** Takes the line, and never says anything. */
function createMute(): Server {
  attack = () => {};
  hostile.removeAllListeners('connection');
  hostile.on('connection', (line: Socket) => void sockets.add(line.resume()));
  return hostile;
}
