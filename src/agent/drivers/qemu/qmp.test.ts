import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../base/system.ts';
import { connectQmp, type QmpEvent } from './qmp.ts';

// The behaviour of a sound QEMU is tested with QEMU, in driver.test.ts; here, what a sound one never does.
describe('QMP', () => {
  let directory: string;
  let server: Server;
  let answer: (line: string, socket: Socket) => void;
  let greeting: string;
  let events: QmpEvent[];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-qmp-'));
    greeting = '{"QMP": {}}\r\n';
    events = [];
    server = createServer((socket) => {
      socket.write(greeting);
      socket.setEncoding('utf8');
      socket.on('error', () => {}); // the client hangs up on us
      socket.on('data', (data: string) => {
        for (const line of data.split('\n').filter((each) => each !== '')) answer(line, socket);
      });
    });
    answer = (line, socket) => socket.write(`{"return": {}, "id": ${JSON.parse(line).id}}\n`);
    await new Promise<void>((resolve) => server.listen(join(directory, 's'), resolve));
  });
  afterEach(async () => {
    await new Promise((resolve) => server.close(resolve));
    await rm(directory, { recursive: true });
  });
  const connect = (timeoutMs = 10_000) =>
    connectQmp({ path: join(directory, 's'), clock: systemClock, timeoutMs, onEvent: (event) => events.push(event) });

  it('gives each answer to its call, in whatever order they come', async () => {
    const qmp = await connect();
    const asked: { id: number; execute: string }[] = [];
    answer = (line, socket) => {
      asked.push(JSON.parse(line));
      if (asked.length === 2)
        for (const { id, execute } of asked.reverse()) socket.write(`{"return": "${execute}", "id": ${id}}\n`);
    };
    expect(await Promise.all([qmp.execute('a'), qmp.execute('b')])).toEqual(['a', 'b']);
    qmp.close();
  });

  it('reads events between and within pieces', async () => {
    const qmp = await connect();
    answer = (line, socket) => {
      socket.write('{"event": "SHUTDOWN", "data": {"rea');
      socket.write(`son": "guest-shutdown"}}\n{"return": 1, "id": ${JSON.parse(line).id}}\n{"event": "STOP"}\n`);
    };
    expect(await qmp.execute('x')).toBe(1);
    expect(events).toEqual([
      { name: 'SHUTDOWN', data: { reason: 'guest-shutdown' } },
      { name: 'STOP', data: {} },
    ]);
    qmp.close();
  });

  it('throws what QEMU says when it refuses', async () => {
    const qmp = await connect();
    answer = (line, socket) =>
      socket.write(`{"error": {"class": "CommandNotFound", "desc": "no such thing"}, "id": ${JSON.parse(line).id}}\n`);
    await expect(qmp.execute('x')).rejects.toThrow('no such thing');
    qmp.close();
  });

  it('gives up on a greeting and on an answer that do not come', async () => {
    const qmp = await connect();
    answer = () => {};
    await expect(qmp.execute('x', undefined, 1)).rejects.toThrow('did not answer x within 1 ms');
    qmp.close();
    greeting = '';
    await expect(connect(1)).rejects.toThrow('did not greet');
  });

  it('fails all waiting calls when the connection ends', async () => {
    const qmp = await connect();
    answer = (_line, socket) => socket.destroy();
    await expect(qmp.execute('x')).rejects.toThrow(/closed the connection|failed/);
    await qmp.closed;
    await expect(qmp.execute('y')).rejects.toThrow('not connected');
  });

  it('does not talk to what is not QMP', async () => {
    greeting = 'SSH-2.0-OpenSSH\r\n';
    await expect(connect()).rejects.toThrow('not QMP');
  });
});
