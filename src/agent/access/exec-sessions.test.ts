import { setImmediate as turn } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import type { HostControl } from '../../api/access-protocol.ts';
import { silentLogger } from '../../base/log.ts';
import { createManualClock, type ManualClock } from '../../base/manual-clock.ts';
import type { ExecOutput, GuestCommand } from '../drivers/access.ts';
import type { Conversation } from './conversation.ts';
import { createExecSessions, type ExecSession, type ExecSessions } from './exec-sessions.ts';

/** A command that says and does what the test wants. */
function testCommand() {
  const output: (ExecOutput | 'end')[] = [];
  let wake = (): void => {};
  const exit = Promise.withResolvers<{ code: number }>();
  const seen = { input: '', ended: false, killed: 0, read: 0 };
  const command: GuestCommand = {
    async *output() {
      for (;;) {
        const next = output.shift();
        if (next === 'end') return;
        if (next === undefined) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
          continue;
        }
        seen.read += next.data.length;
        yield next;
      }
    },
    write: async (bytes) => void (seen.input += Buffer.from(bytes).toString()),
    endInput: () => void (seen.ended = true),
    resize: async () => {},
    exit: exit.promise,
    kill: () => void (seen.killed += 1),
  };
  return {
    command,
    seen,
    say(text: string, stream: ExecOutput['stream'] = 'stdout') {
      output.push({ stream, data: Buffer.from(text) });
      wake();
    },
    end(code: number) {
      output.push('end');
      wake();
      exit.resolve({ code });
    },
  };
}

/** A client: what it was sent, and what it says. */
function testClient({ slow = false } = {}) {
  const controls: HostControl[] = [];
  const said: (Uint8Array | string)[] = [];
  const over = new AbortController();
  let wake = (): void => {};
  const heard = { stdout: '', stderr: '', bytes: 0 };
  const conversation: Conversation = {
    async *messages() {
      while (!over.signal.aborted) {
        const next = said.shift();
        if (next !== undefined) yield next;
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    },
    send: async (message) => {
      if (slow) await turn();
      const text = Buffer.from(message).subarray(1).toString();
      heard[message[0] === 1 ? 'stdout' : 'stderr'] += text;
      heard.bytes += text.length;
    },
    tell: async (control) => void controls.push(control),
    end: () => over.abort(),
    over: over.signal,
  };
  const leave = (): void => {
    over.abort();
    wake();
  };
  over.signal.addEventListener('abort', () => wake());
  return {
    conversation,
    controls,
    heard,
    leave,
    say(message: Uint8Array | string) {
      said.push(message);
      wake();
    },
  };
}

describe('a command in a guest', () => {
  let clock: ManualClock;
  let sessions: ExecSessions;
  let running: ReturnType<typeof testCommand>;
  let session: ExecSession;
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 10; i++) await turn();
  };

  beforeEach(async () => {
    clock = createManualClock();
    let secrets = 0;
    sessions = createExecSessions({
      clock,
      log: silentLogger,
      randomSecret: () => Buffer.from(`secret-${++secrets}`),
      replayBytes: 10,
      sessionsMax: 2,
    });
    running = testCommand();
    session = await sessions.begin('inst_a', async () => running.command);
  });

  it('is read and written by its client, and its end is told', async () => {
    const client = testClient();
    const attached = session.attach(client.conversation, 0);
    client.say(Buffer.from('\0typed'));
    client.say(JSON.stringify({ type: 'end' }));
    running.say('out');
    running.say('err', 'stderr');
    await settle();
    expect(running.seen).toMatchObject({ input: 'typed', ended: true });
    expect(client.heard).toMatchObject({ stdout: 'out', stderr: 'err' });
    running.end(3);
    await attached;
    expect(client.controls).toEqual([
      { type: 'started', session: session.id, inputBytes: 0 },
      { type: 'exit', code: 3 },
    ]);
    expect(() => sessions.find('inst_a', session.id)).toThrow('not known any more');
  });

  it('goes on without a client, who comes back to what was missed, in the middle of a piece', async () => {
    const first = testClient();
    const attached = session.attach(first.conversation, 0);
    running.say('abc');
    await settle();
    first.leave();
    await attached;
    running.say('def');
    await settle();
    const second = testClient();
    const again = sessions.find('inst_a', session.id).attach(second.conversation, 1);
    await settle();
    expect(second.heard.stdout).toBe('bcdef');
    running.end(0);
    await again;
    expect(second.controls.at(-1)).toEqual({ type: 'exit', code: 0 });
  });

  it('tells a client that comes back how much of its input has arrived', async () => {
    const first = testClient();
    const attached = session.attach(first.conversation, 0);
    first.say(Buffer.from('\0twelve bytes'));
    await settle();
    first.leave();
    await attached;
    const second = testClient();
    void session.attach(second.conversation, 0);
    await settle();
    expect(second.controls).toEqual([{ type: 'started', session: session.id, inputBytes: 12 }]);
  });

  it('waits when nobody takes what it says: nothing is dropped, and no more is kept than may be replayed', async () => {
    for (let i = 0; i < 8; i++) running.say('12345');
    await settle();
    expect(running.seen.read).toBe(10);
    const client = testClient();
    const attached = session.attach(client.conversation, 0);
    await settle();
    expect(client.heard.bytes).toBe(40);
    running.end(0);
    await attached;
  });

  it('loses nothing of what waits for a slow client while more comes', async () => {
    const client = testClient({ slow: true });
    const attached = session.attach(client.conversation, 0);
    const text = Array.from({ length: 40 }, (_, i) => String(i).padStart(2, '0')).join('');
    for (let i = 0; i < text.length; i += 2) running.say(text.slice(i, i + 2));
    running.end(0);
    await attached;
    expect(client.heard.stdout).toBe(text);
  });

  it('refuses a client that missed more than is kept, or read what was never said', async () => {
    const client = testClient();
    const attached = session.attach(client.conversation, 0);
    for (let i = 0; i < 8; i++) running.say('12345');
    await settle();
    client.leave();
    await attached;
    await expect(session.attach(testClient().conversation, 3)).rejects.toMatchObject({ code: 'Compacted' });
    await expect(session.attach(testClient().conversation, 41)).rejects.toMatchObject({ code: 'Compacted' });
  });

  it('has one client: the newest', async () => {
    const [first, second] = [testClient(), testClient()];
    const attached = session.attach(first.conversation, 0);
    void session.attach(second.conversation, 0);
    await attached;
    running.say('x');
    await settle();
    expect([first.heard.stdout, second.heard.stdout]).toEqual(['', 'x']);
  });

  it('is killed when its client wants that, and when nobody came for ten minutes', async () => {
    const client = testClient();
    const attached = session.attach(client.conversation, 0);
    client.say(JSON.stringify({ type: 'close' }));
    await attached;
    expect(running.seen.killed).toBe(1);
    const other = testCommand();
    await sessions.begin('inst_a', async () => other.command);
    await settle();
    clock.advance(10 * 60 * 1000 - 1);
    await settle();
    expect(other.seen.killed).toBe(0);
    clock.advance(1);
    await settle();
    expect(other.seen.killed).toBe(1);
  });

  it('is not for the client of another guest, nor one of too many', async () => {
    expect(() => sessions.find('inst_b', session.id)).toThrow('not known any more');
    await sessions.begin('inst_b', async () => testCommand().command);
    await expect(sessions.begin('inst_b', async () => testCommand().command)).rejects.toMatchObject({
      code: 'TooManyRequests',
    });
  });

  it('that cannot begin is not counted', async () => {
    for (let i = 0; i < 3; i++)
      await expect(sessions.begin('inst_b', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    await sessions.begin('inst_b', async () => testCommand().command);
  });
});
