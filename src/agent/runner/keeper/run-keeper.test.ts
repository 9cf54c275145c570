import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../api/errors.ts';
import { system } from '../../../base/system.ts';
import type { RunFiles, RunFolder } from '../files/run-files.ts';
import { FakeRunner, RunWorld, type FakeProgram, instanceId } from './test-fake-guest.ts';

const lines: FakeProgram = {
  output: [
    ['stdout', 'one\ntw'],
    ['stderr', 'bad'],
    ['stdout', 'o\nthree\n'],
    ['stderr', 'ly\n'],
    ['stdout', 'fo'],
    ['stdout', 'ur'],
    ['artifacts', 'some'],
    ['artifacts', ' tar'],
  ],
  exitCode: 3,
};
const texts = { stdout: 'one\ntwo\nthree\nfour', stderr: 'badly\n' };

async function started(...world: ConstructorParameters<typeof RunWorld>): Promise<RunWorld> {
  const made = new RunWorld(...world);
  await made.begin();
  await made.start();
  return made;
}

describe('RunKeeper', () => {
  it('carries output, exit code and artifacts to the control plane', async () => {
    const world = await started(lines, { artifacts: ['*'] });
    expect(world.status?.state).toBe('waiting');
    await world.ended();
    expect(world.status).toMatchObject({ state: 'ended', outcome: 'exited', exitCode: 3, artifactsBytes: 8 });
    expect(world.status?.logBytes).toBe(world.sent.log.length);
    expect(world.texts()).toEqual(texts);
    expect(world.sent.artifacts).toBe('some tar');
  });

  it.each<[string, FakeProgram, boolean, 'off' | 'stay']>([
    ['off after a success', { output: [] }, true, 'off'],
    ['off after a failure', { output: [], exitCode: 1 }, false, 'off'],
    ['not off after a failure when it is to be held', { output: [], exitCode: 1 }, true, 'stay'],
  ])('has the guest power %s', async (_, program, holdOnFailure, wanted) => {
    const world = await started(program, { holdOnFailure });
    const said: string[] = [];
    world.runner.onBye = (power) => said.push(power);
    await world.ended();
    await world.until(() => said.length > 0);
    expect(said).toEqual([wanted]);
  });

  it('writes a part of a line that has waited a quarter of a second', async () => {
    const world = await started({ output: [['stdout', 'password: ']], endless: 'heeds' });
    await world.until(() => world.sent.log.includes('stdout P password: \n'));
  });

  const naming = { env: { TOKEN: { secret: 'ci', key: 'token' } } };
  const printing: FakeProgram = {
    output: [
      ['stdout', 'it is hunt'],
      ['stdout', 'er22\n'],
    ],
    exitCode: 0,
  };

  it('masks the values of secrets in the log, on the host too', async () => {
    const world = new RunWorld(printing, naming);
    world.assigned = { ...world.assigned, secrets: { ci: { token: 'hunter22' } } };
    await world.begin();
    await world.start();
    await world.ended();
    expect(world.texts().stdout).toBe('it is ***\n');
    const kept = [...(world.memory.get(instanceId) ?? [])].filter(([name]) => name !== 'disk');
    for (const [, bytes] of kept) expect(Buffer.from(bytes).toString()).not.toContain('hunter22');
  });

  it('takes no output while it does not know the values to mask', async () => {
    const world = new RunWorld(printing, naming);
    const { secrets: _, ...without } = world.assigned;
    world.assigned = { ...without, secrets: { ci: { token: 'hunter22' } } };
    await world.begin();
    await world.runs?.prepare(world.assigned, world.driver, new AbortController().signal);
    await world.runs?.close();
    world.assigned = without; // the agent starts again, and has not heard of the control plane yet
    await world.begin();
    await world.start();
    await world.clock.advanceSettled(60_000, system.turn);
    expect(world.sent.log).toBe('');
    world.assigned = { ...without, secrets: { ci: { token: 'hunter22' } } };
    world.setGuest('running'); // looks again
    await world.ended();
    expect(world.texts().stdout).toBe('it is ***\n');
  });

  it('ends a program whose time is over', async () => {
    const world = await started({ output: [['stdout', 'x\n']], endless: 'heeds' }, { timeLimitMs: 5000 });
    await world.ended();
    expect(world.status).toMatchObject({ outcome: 'timedOut', exitCode: 143 });
    expect((world.status?.endedAtMs ?? 0) - (world.status?.startedAtMs ?? 0)).toBeGreaterThanOrEqual(5000);
  });

  it('kills one that does not heed it, after its grace', async () => {
    const world = await started({ output: [], endless: 'ignores' }, { timeLimitMs: 5000, graceMs: 1000 });
    await world.ended();
    expect(world.status).toMatchObject({ outcome: 'timedOut', exitCode: 137 });
    expect(world.runner.heard.filter((each) => each === 'term' || each === 'kill')).toEqual(['term', 'kill']);
  });

  it('ends the program of a guest that is to stop, and keeps its output', async () => {
    const world = await started({ output: [['stdout', 'x\n']], endless: 'heeds' });
    await world.until(() => world.status?.state === 'running' && world.sent.log !== '');
    let stopped = false;
    void world.runs?.end(world.assigned).then(() => (stopped = true));
    await world.until(() => stopped);
    await world.ended();
    expect(world.status).toMatchObject({ outcome: 'cancelled', exitCode: 143 });
    expect(world.texts().stdout).toBe('x\n');
  });

  it('never begins what was cancelled before', async () => {
    const world = new RunWorld(lines);
    await world.begin();
    await world.runs?.prepare(world.assigned, world.driver, new AbortController().signal);
    await world.runs?.end(world.assigned);
    world.setGuest('running');
    await world.ended();
    await world.until(() => world.runner.heard.includes('bye'));
    expect(world.status).toMatchObject({ outcome: 'cancelled' });
    expect(world.runner.begun).toBe(0);
  });

  it('is lost when the guest ends before its program, and says why', async () => {
    const world = await started({ output: [['stdout', 'x\nhalf']], endless: 'heeds' });
    await world.until(() => world.sent.log !== '');
    world.setGuest('failed', { code: 'HypervisorFailed', message: 'killed by signal 9' });
    await world.ended();
    expect(world.status).toMatchObject({ outcome: 'lost', reason: 'GuestEnded' });
    expect(world.status?.message).toContain('killed by signal 9');
    expect(world.texts().stdout).toBe('x\nhalf');
  });

  it('does not run a program again in a guest that was restarted', async () => {
    const world = await started({ output: [], endless: 'heeds' });
    await world.until(() => world.status?.state === 'running');
    world.runner.disconnect();
    world.runner = new FakeRunner(lines, 'boot-2');
    await world.ended();
    expect(world.status).toMatchObject({ outcome: 'lost', reason: 'GuestRestarted' });
    expect(world.runner.begun).toBe(0);
  });

  it('finds its way back after bytes that are no frame', async () => {
    const world = await started({ output: [['stdout', 'a\n']], endless: 'heeds' });
    await world.until(() => world.sent.log !== '');
    world.runner.writeRaw('rubbish '.repeat(50));
    await world.until(() => world.runner.heard.filter((each) => each === 'hello').length > 2);
    await world.runs?.end(world.assigned);
    await world.ended();
    expect(world.status).toMatchObject({ outcome: 'cancelled', exitCode: 143 });
    expect(world.texts().stdout).toBe('a\n');
  });

  it('takes nothing that a guest says after its end', async () => {
    const world = await started(lines, { artifacts: ['*'] });
    await world.ended();
    const { log, artifacts } = world.sent;
    world.runner.writeRaw(`berth1 data stdout ${texts.stdout.length} 4 - .\nmore`);
    world.runner.writeRaw('berth1 data artifacts 8 4 - .\nmore');
    await world.clock.advanceSettled(5000, system.turn);
    expect(world.status).toMatchObject({ logBytes: log.length, artifactsBytes: 8 });
    expect(world.sent).toEqual({ log, artifacts });
    expect(world.memory.get(instanceId)?.get('artifacts')?.length).toBe(8);
  });

  it('is lost when the guest says nothing any more', async () => {
    const world = await started({ output: [], endless: 'heeds' });
    await world.until(() => world.status?.state === 'running');
    world.driver.access!.openRunner = () => Promise.reject(new Error('no answer'));
    world.runner.disconnect();
    await world.ended(1000);
    expect(world.status).toMatchObject({ outcome: 'lost', reason: 'GuestSilent' });
  });

  it('is lost when no runner comes', async () => {
    const world = new RunWorld(lines);
    await world.begin();
    world.driver.access!.openRunner = () => Promise.reject(new Error('no port'));
    await world.start();
    await world.ended(5000);
    expect(world.status).toMatchObject({ outcome: 'lost', reason: 'NeverBegan' });
  });

  it('states in the log that it reached its limit, and goes on', async () => {
    const output = Array.from({ length: 50 }, (_, i) => ['stdout', `line ${i}\n`] as const);
    const world = new RunWorld({ output, exitCode: 0 });
    await world.begin({ logBytesMax: 1000 });
    await world.start();
    await world.ended();
    expect(world.status).toMatchObject({ outcome: 'exited', logTruncated: true });
    expect(world.sent.log).toMatch(/line 2\n/);
    expect(world.sent.log).toMatch(/stderr F berth: the log reached its limit of 1000 bytes; the rest was dropped\n$/);
  });

  it.each<[string, ConstructorParameters<typeof ApiError>[0], string]>([
    ['a log that is too large', 'PayloadTooLarge', 'LogNotStored'],
    ['a store that stays full', 'StoreFull', 'LogNotStored'],
  ])('gives up %s, and says so', async (_, code, reason) => {
    const world = await started(lines, { artifacts: ['*'] });
    world.refuse = ({ part }) => (part === 'log' ? new ApiError(code, 'no') : undefined);
    await world.ended(2000);
    expect(world.status).toMatchObject({ outcome: 'exited', exitCode: 3, reason, message: 'no' });
    expect(world.sent.artifacts).toBe('some tar');
  });

  it('waits for a control plane that is away', async () => {
    const world = await started(lines);
    world.refuse = () => new ApiError('Unavailable', 'away');
    await world.until(() => world.status?.state === 'finishing');
    world.setGuest('exited');
    await world.until(() => world.clock.monotonicMs() > 3_600_000, 5000);
    world.refuse = undefined;
    await world.ended();
    expect(world.texts()).toEqual(texts);
  });
});

/** Dead from its `last` change on: nothing that it does reaches the disk. */
function mortal(files: RunFiles, last: number, died: () => void): RunFiles {
  let changes = 0;
  const change = async (act: () => Promise<void>): Promise<void> => {
    changes += 1;
    if (changes > last) {
      died();
      return new Promise(() => {});
    }
    await act();
  };
  return {
    ...files,
    async open(id) {
      const folder = await files.open(id);
      const guarded: RunFolder = {
        readRecords: () => folder.readRecords(),
        size: (part) => folder.size(part),
        read: (part, offset, limit) => folder.read(part, offset, limit),
        close: () => folder.close(),
        writeRecord: (place, bytes) => change(() => folder.writeRecord(place, bytes)),
        truncate: (part, size) => change(() => folder.truncate(part, size)),
        write: (part, offset, bytes) => change(() => folder.write(part, offset, bytes)),
      };
      return guarded;
    },
  };
}

describe('an agent that dies', () => {
  it('at any change on its disk loses and repeats no line', { timeout: 60_000 }, async () => {
    let last = 0;
    for (let finished = false; !finished; last++) {
      const world = new RunWorld(lines, { artifacts: ['*'] });
      let dead = false;
      await world.begin({}, (files) => mortal(files, last, () => (dead = true)));
      void world.start();
      await world.until(() => dead || world.status?.state === 'ended');
      finished = !dead;
      world.runner.disconnect();
      await world.begin();
      await world.start();
      await world.ended();
      expect(world.status, `died at change ${last}`).toMatchObject({
        outcome: 'exited',
        exitCode: 3,
        artifactsBytes: 8,
      });
      expect(world.texts(), `died at change ${last}`).toEqual(texts);
      expect([world.sent.artifacts, world.runner.begun]).toEqual(['some tar', 1]);
    }
    expect(last).toBeGreaterThan(10);
  });

  it('goes on when the disk of the host was full for a while', async () => {
    const world = new RunWorld(lines, { artifacts: ['*'] });
    let writes = 0;
    await world.begin({}, (files) => ({
      ...files,
      async open(id) {
        const folder = await files.open(id);
        const whole = folder.write.bind(folder);
        const write: RunFolder['write'] = async (part, offset, bytes) => {
          writes += 1;
          if (writes <= 5) throw new Error('no space left on device');
          await whole(part, offset, bytes);
        };
        return Object.assign(folder, { write });
      },
    }));
    await world.start();
    await world.ended();
    expect(writes).toBeGreaterThan(5);
    expect(world.status).toMatchObject({ outcome: 'exited', exitCode: 3 });
    expect([world.texts(), world.sent.artifacts]).toEqual([texts, 'some tar']);
  });

  it('leaves a record that is whole, whatever is left of the last', async () => {
    const world = await started(lines);
    await world.ended();
    await world.runs?.close();
    const state = world.memory.get(instanceId)?.get('state');
    state?.fill(0, 4096); // the place that was written last, or the one before
    await world.begin();
    world.setGuest('running');
    await world.ended();
    expect(world.texts()).toEqual(texts);
  });
});
