import { describe, expect, it } from 'vitest';
import type { RunSpec } from '../../api/resources/run.ts';
import { DriverError } from '../host/driver-error.ts';
import { instanceId, makeHost } from '../testing.ts';

type TestHost = ReturnType<typeof makeHost>;

const run: RunSpec = {
  script: 'echo one\necho two >&2\nsleep 5\necho three\nexit 4',
  env: {},
  artifacts: [],
  timeLimitMs: 60_000,
  graceMs: 1000,
  holdOnFailure: false,
};

async function startedHost(change: Partial<RunSpec> = {}): Promise<TestHost> {
  const host = makeHost();
  await host.startAgent();
  host.plane.put({ run: { ...run, ...change } });
  return host;
}

async function until(host: TestHost, met: () => boolean): Promise<void> {
  for (let i = 0; i < 600 && !met(); i++) await host.pass(200);
  expect(met(), JSON.stringify(host.plane.last())).toBe(true);
}

function runOf(host: TestHost) {
  const guest = host.plane.last();
  return guest === undefined || guest.state === 'absent' ? undefined : guest.run;
}

const textOf = (host: TestHost): string => host.plane.runParts.log.replaceAll(/^\S+Z /gm, '');
const whole = 'stdout F one\nstderr F two\nstdout F three\n';

describe('an agent whose guest has a program', () => {
  it('reports it from waiting to its end, and sends its log', async () => {
    const host = await startedHost();
    await until(host, () => runOf(host)?.state === 'running');
    await until(host, () => textOf(host).includes('two'));
    expect(textOf(host)).toBe('stdout F one\nstderr F two\n');
    await until(host, () => runOf(host)?.state === 'ended');
    expect(runOf(host)).toMatchObject({ outcome: 'exited', exitCode: 4, logBytes: host.plane.runParts.log.length });
    expect(textOf(host)).toBe(whole);
    await until(host, () => host.plane.last()?.state === 'exited');
    host.plane.put({ run, want: 'absent' });
    await until(host, () => host.plane.last()?.state === 'absent');
    expect([...host.runMemory.keys()]).toEqual([]);
    await host.stopAll();
  });

  it('goes on where the last agent was', async () => {
    const host = await startedHost();
    await until(host, () => textOf(host).includes('two'));
    await host.stopAll();
    await host.pass(2000);
    await host.startAgent();
    await until(host, () => runOf(host)?.state === 'ended');
    expect([runOf(host)?.outcome, textOf(host), host.boots()]).toEqual(['exited', whole, 1]);
    await host.stopAll();
  });

  it('finishes it while the control plane is away', async () => {
    const host = await startedHost();
    await until(host, () => textOf(host).includes('two'));
    host.plane.setAway(true);
    await host.pass(30_000);
    host.plane.setAway(false);
    await until(host, () => runOf(host)?.state === 'ended');
    expect([runOf(host)?.outcome, textOf(host)]).toEqual(['exited', whole]);
    await host.stopAll();
  });

  it('ends it when the guest is to stop', async () => {
    const host = await startedHost();
    await until(host, () => textOf(host).includes('two'));
    host.plane.put({ run, want: 'stopped' });
    await until(host, () => host.plane.last()?.state === 'stopped' && runOf(host)?.state === 'ended');
    expect(runOf(host)).toMatchObject({ outcome: 'cancelled', exitCode: 143 });
    await host.stopAll();
  });

  it('does not wait for the program of a guest that is to stop when it stops itself', async () => {
    const host = await startedHost({ script: 'echo two\nhang', graceMs: 60_000 });
    await until(host, () => textOf(host).includes('two'));
    host.plane.put({ run: { ...run, graceMs: 60_000 }, want: 'stopped' });
    await host.pass(5000);
    let stopped = false;
    void host.stopAll().then(() => (stopped = true));
    await host.pass(100);
    expect([stopped, host.guest()?.state]).toEqual([true, 'running']);
    await host.startAgent();
    await until(host, () => host.plane.last()?.state === 'stopped' && runOf(host)?.state === 'ended');
    expect(runOf(host)).toMatchObject({ outcome: 'cancelled', exitCode: 137 });
    await host.stopAll();
  });

  it('ends it when its time is over', async () => {
    const host = await startedHost({ script: 'hang', timeLimitMs: 10_000 });
    await until(host, () => runOf(host)?.state === 'ended');
    expect(runOf(host)).toMatchObject({ outcome: 'timedOut', exitCode: 137 });
    await host.stopAll();
  });

  it('fails the guest with the reason why the commit cannot be fetched', async () => {
    const host = makeHost();
    host.fetchRepository = () => Promise.reject(new DriverError('NotPossible', 'there is no such commit'));
    await host.startAgent();
    const { script: _, ...spec } = run;
    host.plane.put({ run: { ...spec, repo: { url: 'https://git.example.com/a', commit: 'a'.repeat(40) } } });
    await until(host, () => host.plane.last()?.state === 'failed');
    expect(host.plane.last()).toMatchObject({ reason: 'NotPossible', message: 'there is no such commit' });
    expect(runOf(host)).toMatchObject({ state: 'ended', outcome: 'lost', reason: 'NotPossible' });
    await host.stopAll();
  });

  it('removes what is left of a run that the control plane speaks of no more', async () => {
    const host = await startedHost();
    await until(host, () => runOf(host)?.state === 'running');
    await host.stopAll();
    host.plane.forget();
    host.runMemory.set(`inst_${'9'.repeat(26)}`, new Map(host.runMemory.get(instanceId)));
    await host.startAgent();
    await until(host, () => host.runMemory.size === 1);
    expect([...host.runMemory.keys()]).toEqual([instanceId]); // its guest is here still
    await host.stopAll();
  });
});
