import { once } from 'node:events';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ExecRequest } from '../../../../api/access-protocol.ts';
import { createManualClock, type ManualClock } from '../../../../base/manual-clock.ts';
import { systemClock } from '../../../../base/system.ts';
import type { Clock } from '../../../../base/clock.ts';
import { talkToGuestAgent } from './guest-agent.ts';
import { runByGuestAgent } from './guest-exec.ts';

interface Asked {
  readonly execute: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** A guest agent of the test's making at the other end of a socket: `answer` says what it writes, as it is. */
describe('the guest agent', () => {
  let server: Server;
  let answer: (asked: Asked) => string | Buffer;
  let asked: Asked[];
  let socket: Socket;
  const sync = (request: Asked): string => `\xff${JSON.stringify({ return: request.arguments['id'] })}\n`;

  beforeEach(async () => {
    asked = [];
    server = createServer((guest) => {
      guest.on('error', () => {});
      let text = '';
      guest.on('data', (bytes) => {
        text += bytes.toString('latin1').replaceAll('\xff', '');
        for (let cut = text.indexOf('\n'); cut >= 0; cut = text.indexOf('\n')) {
          const request: Asked = { arguments: {}, ...JSON.parse(text.slice(0, cut)) };
          text = text.slice(cut + 1);
          asked.push(request);
          const said = answer(request);
          guest.write(typeof said === 'string' ? Buffer.from(said, 'latin1') : said);
        }
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    socket = createConnection(address.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.on('error', () => {});
  });
  afterEach(async () => {
    socket.destroy();
    server.close();
    await once(server, 'close');
  });

  const run = (request: Partial<ExecRequest>, clock: Clock = systemClock) =>
    runByGuestAgent(
      talkToGuestAgent(socket, { clock, syncId: () => 7 }),
      { command: ['id'], stdin: false, ...request },
      { clock, release: () => {} },
    );
  /** Answers as qemu-ga does: the command runs for two looks, then has ended with `ended`. */
  const wellBehaved = (ended: object): ((request: Asked) => string) => {
    let looks = 0;
    return (request) => {
      if (request.execute === 'guest-sync-delimited') return sync(request);
      if (request.execute === 'guest-exec') return '{"return": {"pid": 42}}\n';
      looks += 1;
      return `${JSON.stringify({ return: looks < 2 ? { exited: false } : { exited: true, ...ended } })}\n`;
    };
  };
  const outputOf = async (command: Awaited<ReturnType<typeof run>>): Promise<string> => {
    let text = '';
    for await (const { stream, data } of command.output()) text += `${stream}: ${Buffer.from(data).toString()} `;
    return text.trim();
  };

  it('runs a command, with its output, its errors and its code', async () => {
    answer = wellBehaved({ exitcode: 3, 'out-data': btoa('out'), 'err-data': btoa('err') });
    const command = await run({ command: ['ls', '-l'], env: { A: '1' } });
    expect(await outputOf(command)).toBe('stdout: out stderr: err');
    expect(await command.exit).toEqual({ code: 3 });
    expect(asked.find(({ execute }) => execute === 'guest-exec')?.arguments).toEqual({
      path: 'ls',
      arg: ['-l'],
      env: ['A=1'],
      'capture-output': true,
    });
  });

  it('takes input before it begins, and a directory by a shell', async () => {
    answer = wellBehaved({ exitcode: 0 });
    const command = await run({ command: ['wc', '-c'], stdin: true, workingDirectory: '/a b' });
    await command.write(Buffer.from('abc'));
    command.endInput();
    expect(await command.exit).toEqual({ code: 0 });
    expect(asked.find(({ execute }) => execute === 'guest-exec')?.arguments).toMatchObject({
      path: '/bin/sh',
      arg: ['-c', 'cd -- "$1" && shift && exec "$@"', 'sh', '/a b', 'wc', '-c'],
      'input-data': btoa('abc'),
    });
  });

  it('says of a command that was killed which signal did it', async () => {
    answer = wellBehaved({ signal: 9 });
    expect(await (await run({})).exit).toEqual({ code: 137, signal: 9 });
  });

  it('is not asked for ever about a command that cannot be killed', async () => {
    const clock = createManualClock();
    answer = (request) => {
      if (request.execute === 'guest-sync-delimited') return sync(request);
      if (request.arguments['path'] === '/bin/kill') return '{"error": {"desc": "no such file"}}\n';
      return request.execute === 'guest-exec' ? '{"return": {"pid": 42}}\n' : '{"return": {"exited": false}}\n';
    };
    let released = false;
    const command = await runByGuestAgent(
      talkToGuestAgent(socket, { clock, syncId: () => 7 }),
      { command: ['sleep', 'infinity'], stdin: false },
      { clock, release: () => void (released = true) },
    );
    command.kill();
    while (!released) {
      await new Promise((resolve) => setImmediate(resolve));
      // Only past a pause between two looks: an answer takes as long as it takes.
      if ((clock.nextDueMs() ?? Infinity) - clock.monotonicMs() <= 500) clock.advance(500);
    }
    expect(await command.exit).toEqual({ code: 137 });
  });

  it('passes over what was said to an earlier client', async () => {
    const good = wellBehaved({ exitcode: 0 });
    answer = (request) =>
      request.execute === 'guest-sync-delimited'
        ? `{"return": {"pid": 1}}\nhalf a li\n\xff{"return": 6}\n${sync(request)}`
        : good(request);
    expect(await (await run({})).exit).toEqual({ code: 0 });
  });

  it('refuses what the guest cannot run', async () => {
    answer = (request) =>
      request.execute === 'guest-sync-delimited' ? sync(request) : '{"error": {"desc": "no such file"}}\n';
    await expect(run({})).rejects.toMatchObject({ code: 'NotPossible', message: 'no such file' });
  });

  it('refuses a terminal, and more input than it may keep', async () => {
    answer = wellBehaved({ exitcode: 0 });
    await expect(run({ terminal: { columns: 80, rows: 24 } })).rejects.toMatchObject({ code: 'NotPossible' });
    const command = await run({ stdin: true });
    await command.write(Buffer.alloc(1024 * 1024 + 1));
    await expect(command.exit).rejects.toMatchObject({ code: 'NotPossible' });
  });

  it('says so when output was cut off', async () => {
    answer = wellBehaved({ exitcode: 0, 'out-data': btoa('x'), 'out-truncated': true });
    await expect((await run({})).exit).rejects.toMatchObject({ message: expect.stringContaining('the rest is lost') });
  });

  it('gives up on one that does not answer', async () => {
    answer = () => '';
    const clock: ManualClock = createManualClock();
    const command = run({}, clock);
    command.catch(() => {});
    while (asked.length === 0) await new Promise((resolve) => setImmediate(resolve));
    clock.advance(3000);
    await expect(command).rejects.toMatchObject({
      code: 'NotPossible',
      message: expect.stringContaining('install and start qemu-guest-agent'),
    });
  });

  it.each([
    ['whole lines, more than it keeps', `${JSON.stringify({ return: 'x'.repeat(600_000) })}\n`.repeat(4)],
    ['half a line', '{"return": "x'],
  ])('takes nothing that is said unasked for an answer: %s', async (_, aside) => {
    const answers = [`{"return": 1}\n${aside}`, '{"return": 2}\n', '{"return": 3}\n'];
    answer = (request) => (request.execute === 'guest-sync-delimited' ? sync(request) : (answers.shift() ?? ''));
    const talk = talkToGuestAgent(socket, { clock: systemClock, syncId: () => 7 });
    expect(await talk.ask('guest-ping')).toBe(1);
    while (socket.bytesRead < aside.length) await new Promise((resolve) => setImmediate(resolve));
    expect(await talk.ask('guest-ping')).toBe(2);
    expect(await talk.ask('guest-ping')).toBe(3);
    const [sayHello, ask] = ['guest-sync-delimited', 'guest-ping'];
    expect(asked.map(({ execute }) => execute)).toEqual([sayHello, ask, sayHello, ask, ask]);
  });

  it('gives up on one that talks nonsense without end', async () => {
    answer = () => Buffer.alloc(49 * 1024 * 1024, 'x');
    await expect(run({})).rejects.toMatchObject({ code: 'NotPossible' });
    expect(socket.destroyed).toBe(true);
  });
});
