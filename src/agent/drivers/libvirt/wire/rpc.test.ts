import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../../../base/system.ts';
import { connectRpc, LibvirtError, type Rpc } from './rpc.ts';
import { xdrReader, xdrWriter } from './xdr.ts';

/** A daemon that speaks the frames and answers as each test says. */
let folder: string;
let server: Server;
let sockets: Socket[];
let received: { readonly procedure: number; readonly serial: number; readonly socket: Socket }[];
let onCall: (call: (typeof received)[number]) => void;
let events: number[];
let rpc: Rpc;

const message = (words: readonly number[], body: Buffer = Buffer.alloc(0)): Buffer => {
  const header = Buffer.alloc(28);
  [28 + body.length, 0x2000_8086, 1, ...words].forEach((word, at) => header.writeInt32BE(word, at * 4));
  return Buffer.concat([header, body]);
};
const reply = ({ procedure, serial, socket }: (typeof received)[number], body?: Buffer, status = 0): void =>
  void socket.write(message([procedure, 1, serial, status], body));
const connect = (timeoutMs = 5_000): Promise<Rpc> =>
  connectRpc({
    path: join(folder, 's'),
    clock: systemClock,
    timeoutMs,
    onEvent: (procedure) => void events.push(procedure),
  });

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'berth-rpc-'));
  [sockets, received, events] = [[], [], []];
  onCall = (call) => reply(call, xdrWriter().int(call.procedure).bytes());
  server = createServer((socket) => {
    sockets.push(socket);
    let bytes = Buffer.alloc(0);
    socket.on('error', () => {});
    socket.on('data', (piece) => {
      bytes = Buffer.concat([bytes, piece]);
      for (
        let length = 0;
        bytes.length >= 4 && bytes.length >= (length = bytes.readUInt32BE());
        bytes = bytes.subarray(length)
      ) {
        const header = xdrReader(bytes.subarray(12));
        const [procedure, , serial] = [header.int(), header.int(), header.uint()];
        const call = { procedure, serial, socket };
        received.push(call);
        onCall(call);
      }
    });
  }).listen(join(folder, 's'));
  await once(server, 'listening');
  rpc = await connect();
});
afterEach(() => {
  rpc.close();
  for (const socket of sockets) socket.destroy();
  server.close();
  rmSync(folder, { recursive: true });
});

it('answers each call with its own answer, in whatever order and pieces they come', async () => {
  const kept: (typeof received)[number][] = [];
  onCall = (call) => {
    kept.push(call);
    if (kept.length < 3) return;
    const answers = kept.map(({ procedure, serial }) =>
      message([procedure, 1, serial, 0], xdrWriter().int(procedure).bytes()),
    );
    for (const byte of Buffer.concat(answers.reverse())) call.socket.write(Buffer.from([byte]));
  };
  const answers = await Promise.all([11, 12, 13].map((procedure) => rpc.call({ procedure, name: 'x' })));
  expect(answers.map((body) => body.int())).toEqual([11, 12, 13]);
});

it('has no more than five calls under way', async () => {
  onCall = () => {};
  const calls = Promise.all(Array.from({ length: 12 }, (_, at) => rpc.call({ procedure: at, name: 'x' })));
  for (let answered = 0; answered < 12; answered++) {
    while (received.length <= answered) await new Promise((resolve) => setImmediate(resolve));
    expect(received.length - answered).toBeLessThanOrEqual(5);
    reply(received[answered] ?? expect.unreachable());
  }
  await calls;
});

it("tells libvirt's own error, and goes on", async () => {
  const body = xdrWriter().int(42).int(10).maybeString('no domain with that name').int(2).bytes();
  onCall = (call) => (call.procedure === 1 ? reply(call, body, 1) : reply(call, xdrWriter().int(3).bytes()));
  const failed = await rpc.call({ procedure: 1, name: 'domainByName' }).catch((error: unknown) => error);
  expect(failed).toMatchObject({ code: 42, message: 'domainByName: no domain with that name' });
  expect((await rpc.call({ procedure: 2, name: 'y' })).int()).toBe(3);
});

it('hands on events, and no answers to nobody', async () => {
  sockets[0]?.write(Buffer.concat([message([318, 2, 0, 0]), message([9, 1, 77, 0])]));
  await rpc.call({ procedure: 2, name: 'y' });
  expect(events).toEqual([318]);
});

it.each([
  ['a length that is too small', Buffer.from('0000000400000000', 'hex')],
  ['a length that nobody would send', Buffer.from('7fffffff00000000', 'hex')],
])('ends the connection at %s, with all calls', async (_, bytes) => {
  onCall = ({ socket }) => void socket.write(bytes);
  await expect(rpc.call({ procedure: 2, name: 'y' })).rejects.toThrow(/sent a message of \d+ bytes/);
  expect(await rpc.closed).toMatch(/bytes/);
  await expect(rpc.call({ procedure: 2, name: 'z' })).rejects.toThrow(LibvirtError);
});

it('fails the calls that are open, and those in line, when the daemon goes', async () => {
  onCall = () => {};
  const calls = Array.from({ length: 8 }, (_, at) =>
    rpc.call({ procedure: at, name: 'x' }).catch((error: unknown) => error),
  );
  while (received.length < 5) await new Promise((resolve) => setImmediate(resolve));
  sockets[0]?.destroy();
  for (const failed of await Promise.all(calls))
    expect(failed).toMatchObject({ code: undefined, message: expect.stringContaining('closed the connection') });
});

it('gives up a daemon that owes an answer for too long', async () => {
  onCall = () => {};
  await expect(rpc.call({ procedure: 2, name: 'slow', timeoutMs: 20 })).rejects.toThrow('did not answer slow in 20 ms');
  expect(await rpc.closed).toContain('slow');
});

it('says where nobody listens', async () => {
  await expect(
    connectRpc({ path: join(folder, 'none'), clock: systemClock, timeoutMs: 100, onEvent: () => {} }),
  ).rejects.toThrow(/none: .*ENOENT/);
});
