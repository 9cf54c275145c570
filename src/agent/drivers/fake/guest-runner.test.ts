import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createManualClock } from '../../../base/manual-clock.ts';
import { seededPrng } from '../../../base/prng.ts';
import { system } from '../../../base/system.ts';
import { type AgentCommand, encodeCommand, FrameDecoder, type Heard, type RunStream } from '../../runner/protocol.ts';
import { tarOf } from '../container/test-tar.ts';
import { untilGuest } from '../conformance.ts';
import type { Driver, GuestSpec } from '../driver.ts';
import { testSpec } from '../qemu/test-host.ts';
import { createFakeDriver } from './driver.ts';
import { createFakeWorld } from './world.ts';

const turn = (): Promise<void> => new Promise((resolve) => system.afterTurn(resolve));
const never = new AbortController().signal;
const host = 'host-1';

/** An agent by hand: what it hears, and how much of each stream it has. */
class Listener {
  readonly heard: Heard[] = [];
  readonly port: Duplex;
  readonly #has: Record<RunStream, number>;
  readonly #decoder = new FrameDecoder();

  constructor(port: Duplex, has: Partial<Record<RunStream, number>> = {}) {
    this.port = port;
    this.#has = { stdout: 0, stderr: 0, artifacts: 0, ...has };
    port.on('data', (bytes: Buffer) => this.heard.push(...this.#decoder.push(bytes)));
  }

  say(command: AgentCommand): void {
    this.port.write(encodeCommand(command));
  }

  hello(nonce: string): void {
    this.#decoder.expect(nonce);
    this.say({ kind: 'hello', nonce, offsets: this.#has });
  }

  /** Text of a stream, as it was said. */
  text(stream: RunStream): string {
    return this.heard
      .map((frame) => (frame.kind === 'data' && frame.stream === stream ? String(frame.bytes) : ''))
      .join('');
  }

  kinds(): string[] {
    return this.heard.map(({ kind }) => kind);
  }
}

async function guestWith(script: string) {
  const clock = createManualClock();
  const world = createFakeWorld({
    clock,
    latencies: { pullMs: 0, cloneMs: 0, startMs: 0, bootMs: 100, shutdownMs: 500, suspendMs: 0 },
  });
  const disk = tarOf([{ path: 'script', data: Buffer.from(script) }]);
  const open = (): Driver => createFakeDriver({ world, host, prng: seededPrng(1), readRunDisk: async () => disk });
  const driver = open();
  const spec: GuestSpec = testSpec({ runDisk: '/run.img' });
  const { instanceId } = spec;
  const pass = (ms: number): Promise<void> => clock.advanceSettled(ms, turn);
  const created = driver.create(spec, never);
  await pass(0);
  await created;
  return {
    ...{ clock, world, driver, instanceId, pass, open },
    guest: (from = driver) => from.guests().find((each) => each.instanceId === instanceId),
    openPort: async (from = driver, has?: Partial<Record<RunStream, number>>) =>
      new Listener((await from.access?.openRunner?.(instanceId)) ?? expect.unreachable(), has),
  };
}

describe('the program of a fake guest', () => {
  it('runs when it is told to, in the guest’s time, and its guest powers off when it is let go', async () => {
    const { pass, openPort, driver, instanceId, guest } = await guestWith(
      'echo one\necho "two" >&2\nsleep 5\necho three\nexit 7\n',
    );
    const agent = await openPort();
    agent.hello('00000001');
    await pass(99);
    expect(agent.heard).toEqual([]); // it boots
    await pass(10);
    expect(agent.heard).toMatchObject([{ kind: 'begin' }, { kind: 'welcome', nonce: '00000001', phase: 'new' }]);
    agent.say({ kind: 'go' });
    agent.say({ kind: 'go' });
    await pass(10);
    expect([agent.text('stdout'), agent.text('stderr')]).toEqual(['one\n', 'two\n']);
    await pass(4900);
    expect(agent.kinds()).not.toContain('exit');
    agent.say({ kind: 'ping', nonce: '000000aa' });
    await pass(100);
    expect(agent.text('stdout')).toBe('one\nthree\n');
    expect(agent.heard.slice(-2)).toEqual([
      { kind: 'exit', code: 7 },
      { kind: 'done', status: 0 },
    ]);
    expect(agent.heard).toContainEqual({ kind: 'pong', nonce: '000000aa' });
    agent.say({ kind: 'bye', power: 'off' });
    const closed = once(agent.port, 'close');
    const ended = untilGuest(driver, instanceId, (seen) => seen?.state === 'exited');
    await pass(600);
    await Promise.all([closed, ended]);
    expect(guest()?.reason?.code).toBe('GuestShutdown');
  });

  it('keeps what was not acknowledged over disconnects and a new driver', async () => {
    const { pass, openPort, open } = await guestWith('echo one\nsleep 1\necho two\nsleep 1\necho three\nexit 0\n');
    const first = await openPort();
    first.hello('00000001');
    first.say({ kind: 'go' });
    await pass(200);
    first.say({ kind: 'ack', stream: 'stdout', offset: 4 });
    await pass(10);
    first.port.destroy();
    await pass(5000); // without a listener
    const second = await openPort();
    second.hello('00000002');
    await pass(10);
    // "one" was acknowledged, so it is not said again, although this agent says that it has nothing.
    expect(second.text('stdout')).toBe('two\nthree\n');
    expect(second.kinds()).toEqual(['welcome', 'data', 'exit', 'done']);
    // The next agent takes over from one that died with its port open.
    const third = await openPort(open(), { stdout: 8 });
    second.say({ kind: 'kill' });
    third.hello('00000003');
    await pass(10);
    expect(third.heard).toMatchObject([
      { kind: 'welcome', phase: 'over' },
      { kind: 'data', offset: 8 },
      { kind: 'exit', code: 0 },
      { kind: 'done' },
    ]);
  });

  it.each([
    ['TERM', 'sleep 1000', 'term', 143],
    ['KILL', 'hang', 'kill', 137],
  ] as const)('is ended by SIG%s', async (_, script, kind, code) => {
    const { pass, openPort } = await guestWith(script);
    const agent = await openPort();
    agent.hello('00000001');
    agent.say({ kind: 'go' });
    await pass(200);
    if (kind === 'kill') agent.say({ kind: 'term' });
    await pass(10);
    expect(agent.kinds()).not.toContain('exit'); // "hang" does not heed it
    agent.say({ kind });
    await pass(10);
    expect(agent.heard).toContainEqual({ kind: 'exit', code });
  });

  it.each([
    ['false', 1],
    ['false\ntrue', 0],
    ['make all', 127],
    ['exit 300', 44],
    ['# nothing\n\n', 0],
    ['false\nexit', 1],
  ])('%j has the exit code %d', async (script, code) => {
    const { pass, openPort } = await guestWith(script);
    const agent = await openPort();
    agent.hello('00000001');
    agent.say({ kind: 'go' });
    await pass(200);
    expect(agent.heard).toContainEqual({ kind: 'exit', code });
  });

  it('stands still while its guest is suspended', async () => {
    const { pass, openPort, driver, instanceId } = await guestWith('sleep 1\necho one\n');
    const agent = await openPort();
    agent.hello('00000001');
    agent.say({ kind: 'go' });
    await pass(200);
    const suspended = driver.suspension?.suspend(instanceId);
    await pass(0);
    await suspended;
    agent.say({ kind: 'ping', nonce: '000000aa' });
    await pass(10_000);
    expect(agent.kinds()).toEqual(['begin', 'welcome']);
    const resumed = driver.suspension?.resume(instanceId);
    await pass(0);
    await resumed;
    await pass(1000);
    expect(agent.kinds()).toEqual(['begin', 'welcome', 'pong', 'data', 'exit', 'done']);
  });

  it('waits when it has written much that is not acknowledged', async () => {
    const { pass, openPort } = await guestWith(`echo ${'x'.repeat(1023)}\n`.repeat(1100));
    const agent = await openPort();
    agent.hello('00000001');
    agent.say({ kind: 'go' });
    await pass(200);
    expect(agent.text('stdout')).toHaveLength(1024 * 1024);
    agent.say({ kind: 'ack', stream: 'stdout', offset: 1024 * 1024 });
    await pass(10);
    expect(agent.text('stdout')).toHaveLength(1024 * 1100);
    expect(agent.kinds().at(-1)).toBe('done');
  });

  it('is never reached when its guest does not boot', async () => {
    const { pass, openPort, guest } = await guestWith('fail-boot\n');
    const agent = await openPort();
    agent.hello('00000001');
    await pass(1_000_000);
    expect(agent.heard).toEqual([]);
    expect(guest()).toMatchObject({ state: 'running', ready: false });
  });

  it('begins anew, under another boot, when its guest is started again', async () => {
    const { pass, openPort, driver, instanceId } = await guestWith('echo one\nhang\n');
    const first = await openPort();
    first.hello('00000001');
    first.say({ kind: 'go' });
    await pass(200);
    await driver.stop(instanceId, 0);
    const started = driver.start(instanceId);
    await pass(0);
    await started;
    const second = await openPort();
    second.hello('00000002');
    await pass(200);
    const [before, after] = [first, second].map(({ heard }) => heard.find(({ kind }) => kind === 'welcome'));
    expect(after).toMatchObject({ kind: 'welcome', phase: 'new' });
    expect(before).not.toMatchObject({ bootId: after?.kind === 'welcome' ? after.bootId : '' });
    expect(second.text('stdout')).toBe('');
  });
});
