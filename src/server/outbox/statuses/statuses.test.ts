import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JobForgeOrigin, JobStatus } from '../../../api/resources/job.ts';
import { silentLogger } from '../../../base/log.ts';
import { createManualClock, type ManualClock } from '../../../base/manual-clock.ts';
import { seededPrng } from '../../../base/prng.ts';
import { system, systemFetch } from '../../../base/system.ts';
import { Cache } from '../../../core/state/cache.ts';
import { defaultPolicy } from '../../../core/state/context.ts';
import { keys } from '../../../core/state/keys.ts';
import { testJob } from '../../../core/testing.ts';
import { createMemoryStore } from '../../../store/memory/memory-store.ts';
import { type Store, StoreError } from '../../../store/store.ts';
import { Committer } from '../../commit.ts';
import { decideAndCommit, type Decider } from '../../decide.ts';
import { TestForge, testSha } from '../../intake/forges/testing.ts';
import { CommitStatuses } from './statuses.ts';

let forge: TestForge;
let clock: ManualClock;
let store: Store;
let decider: Decider;
let storeFails = false;
let pauses = 0;
const log = { ...silentLogger, warn: () => void (pauses += 1) };
const running: CommitStatuses[] = [];

beforeEach(async () => {
  forge = await new TestForge('forgejo').start();
  clock = createManualClock();
  storeFails = false;
  pauses = 0;
  const memory = createMemoryStore();
  store = Object.assign(Object.create(memory) as Store, {
    commit: (...of: Parameters<Store['commit']>) =>
      storeFails ? Promise.reject(new StoreError('Unavailable', 'away')) : memory.commit(...of),
  });
  decider = controlPlane();
});

afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.stop()));
  await forge.stop();
});

function controlPlane(): Decider {
  const cache = new Cache(() => clock.monotonicMs());
  const committer = new Committer({ store, cache, log: silentLogger });
  return { cache, committer, clock, prng: seededPrng(1), policy: defaultPolicy };
}

function start({
  leads = (): boolean => true,
  hook = forge.hook(),
  externalUrl = 'https://berth.test',
  fetch = systemFetch,
} = {}): CommitStatuses {
  const forges = { hooks: [hook], fetch, externalUrl };
  const statuses = new CommitStatuses({ decider, forges, leads, log });
  running.push(statuses);
  if (leads()) statuses.lead();
  return statuses;
}

const origin = {
  hook: 'main',
  forge: 'forgejo',
  delivery: 'd1',
  eventKey: 'e'.repeat(64),
  event: 'push',
  repository: 'owner/web',
  repositoryId: '7',
  sha: testSha(1),
  ref: 'refs/heads/main',
  context: 'berth/push/default',
} as const;

/** Writes a job, or a later state of it. */
async function put(name: string, status: Partial<JobStatus>, changes: Partial<JobForgeOrigin> = {}): Promise<void> {
  const key = keys.job('default', name);
  await decideAndCommit(decider, (snapshot) => {
    const entry = snapshot.get('job', key);
    const fresh = testJob(name, { forge: { ...origin, ...changes } });
    const job = entry?.value ?? fresh;
    const value = { ...job, status: { ...job.status, ...status } };
    return { plan: { changes: [{ key, ifRevision: entry?.revision ?? 0, value }] } };
  });
}

function recorded(name: string): JobStatus['commitStatus'] {
  return decider.cache.committed('job', keys.job('default', name))?.value.status.commitStatus;
}

const sent = (): readonly string[] => forge.statuses.map(({ state, description }) => `${state}: ${description}`);

describe('a commit status', () => {
  it('follows its job from the queue to the end', async () => {
    start();
    await put('a', { phase: 'Queued' });
    await expect.poll(() => recorded('a')).toEqual({ state: 'queued', final: false });
    await put('a', { phase: 'Placing' });
    await put('a', { phase: 'Running' });
    await expect.poll(() => recorded('a')).toEqual({ state: 'running', final: false });
    await put('a', { phase: 'Succeeded', startedAtMs: 1_000, endedAtMs: 66_000 });
    await expect.poll(() => recorded('a')).toEqual({ state: 'success', final: true });
    expect(sent()).toEqual([
      'pending: waiting for a virtual machine',
      'pending: running',
      'success: succeeded after 1 min 5 s',
    ]);
    expect(forge.statuses[0]).toMatchObject({
      repository: 'owner/web',
      sha: testSha(1),
      context: 'berth/push/default',
      target_url: 'https://berth.test/v1/jobs/a/log?project=default',
    });
  });

  const attempt = { number: 1, instance: 'a-1', instanceId: 'i', createdAtMs: 0 };
  it.each<[string, Partial<JobStatus>, string]>([
    [
      'of a script that failed',
      { phase: 'Failed', exitCode: 3, attempts: [{ ...attempt, outcome: 'failure' }] },
      'failure: failed with exit code 3',
    ],
    [
      'of a host that was lost',
      { phase: 'Failed', message: 'the host was lost', attempts: [{ ...attempt, outcome: 'infrastructure' }] },
      'error: could not run: the host was lost',
    ],
    ['of a job that took too long', { phase: 'TimedOut' }, 'failure: timed out'],
    [
      'of a job that was cancelled',
      { phase: 'Cancelled', cancel: { atMs: 0, reason: 'Superseded', message: 'job "b" is for a newer commit' } },
      'error: cancelled: job "b" is for a newer commit',
    ],
    [
      'with a long message',
      { phase: 'Failed', message: `two\nlines ${'x'.repeat(500)}` },
      `error: could not run: two lines ${'x'.repeat(114)}…`,
    ],
  ])('%s', async (_, status, expected) => {
    start();
    await put('a', status);
    await expect.poll(sent).toEqual([expected]);
    expect(forge.statuses[0]?.description.length).toBeLessThanOrEqual(140);
  });

  it('is not sent without a token', async () => {
    const { token: _, ...hook } = forge.hook();
    start({ hook });
    await put('a', { phase: 'Succeeded' });
    clock.advance(120_000);
    expect(forge.requests).toEqual([]);
  });

  it('is not sent of stages that have passed', async () => {
    await put('a', { phase: 'Queued' });
    await put('a', { phase: 'Running' });
    await put('a', { phase: 'Succeeded' });
    start();
    await expect.poll(() => recorded('a')).toEqual({ state: 'success', final: true });
    expect(forge.statuses).toHaveLength(1);
  });

  it('is not sent of a job that a newer one reports for', async () => {
    await put('a', { phase: 'Failed', attempts: [{ ...attempt, outcome: 'failure' }] });
    await put('b', { phase: 'Succeeded' });
    await put('c', { phase: 'Succeeded' }, { context: 'berth/push/other' });
    start();
    await expect.poll(() => [recorded('b')?.final, recorded('c')?.final]).toEqual([true, true]);
    expect(forge.statuses.map(({ state, context }) => `${context} ${state}`).sort()).toEqual([
      'berth/push/default success',
      'berth/push/other success',
    ]);
  });

  it('stays when it is final', async () => {
    start();
    await put('a', { phase: 'Succeeded' });
    await expect.poll(() => recorded('a')?.final).toBe(true);
    await put('a', { phase: 'Running' });
    await put('z', { phase: 'Succeeded' }, { sha: testSha(2) });
    await expect.poll(() => recorded('z')?.final).toBe(true);
    expect(forge.statuses.map(({ sha }) => sha)).toEqual([testSha(1), testSha(2)]);
  });
});

describe('the leader', () => {
  it('alone sends, and a new one sends what is due', async () => {
    let leads = false;
    const statuses = start({ leads: () => leads });
    await put('a', { phase: 'Succeeded' });
    clock.advance(10_000);
    expect(forge.requests).toEqual([]);
    leads = true;
    statuses.lead();
    await expect.poll(() => recorded('a')).toEqual({ state: 'success', final: true });
  });
});

it('that is under way when another process is about to lead is aborted', async () => {
  let arrived: (() => void) | undefined;
  const aborted = new Promise<void>((resolve) => (arrived = resolve));
  const hanging: typeof fetch = (_url, init) =>
    new Promise((_resolve, reject) => {
      init?.signal?.addEventListener('abort', () => {
        arrived?.();
        reject(new Error('aborted'));
      });
    });
  let leads = true;
  const statuses = start({ leads: () => leads, fetch: hanging });
  await put('a', { phase: 'Running' });
  await system.turn();
  leads = false;
  statuses.stepDown();
  await aborted;
  await system.turn();
  expect([pauses, recorded('a')]).toEqual([0, undefined]);
});

describe('at least once:', () => {
  it('a status that was sent and not recorded is sent again after a restart', async () => {
    await put('a', { phase: 'Running' });
    storeFails = true;
    const first = start();
    await forge.requested(1);
    await first.stop();
    storeFails = false;
    expect(recorded('a')).toBeUndefined();
    start();
    await expect.poll(() => recorded('a')).toEqual({ state: 'running', final: false });
    expect(sent()).toEqual(['pending: running', 'pending: running']);
  });

  it('a status whose answer was lost is sent again', async () => {
    forge.failNext({ status: 0, lost: true });
    start();
    await put('a', { phase: 'Running' });
    await paused(1);
    clock.advance(2_000);
    await expect.poll(() => recorded('a')).toEqual({ state: 'running', final: false });
    expect(sent()).toEqual(['pending: running', 'pending: running']);
  });
});

describe('a forge that wants to be left alone', () => {
  it.each<[string, Readonly<Record<string, string>>, number]>([
    ['for some seconds', { 'retry-after': '30' }, 30_000],
    ['until a time', { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '1767225720' }, 120_000],
    ['without saying how long', {}, 60_000],
  ])('%s gets no request until then, of any job', async (_, headers, pauseMs) => {
    forge.failNext({ status: 429, headers });
    start();
    await put('a', { phase: 'Running' });
    await paused(1);
    await put('b', { phase: 'Running' }, { sha: testSha(2) });
    await system.turn();
    clock.advance(pauseMs - 1);
    await system.turn();
    expect(forge.requests).toHaveLength(1);
    clock.advance(1);
    await expect.poll(() => [recorded('a')?.state, recorded('b')?.state]).toEqual(['running', 'running']);
  });

  it('gets only the last state after the pause', async () => {
    forge.failNext({ status: 403, headers: { 'retry-after': '30' } });
    start();
    await put('a', { phase: 'Queued' });
    await paused(1);
    await put('a', { phase: 'Running' });
    await put('a', { phase: 'Succeeded' });
    clock.advance(30_000);
    await expect.poll(() => recorded('a')).toEqual({ state: 'success', final: true });
    expect(sent()).toEqual(['success: succeeded']);
  });

  it('holds up no request to stop', async () => {
    forge.failNext({ status: 429, headers: { 'retry-after': '3000' } });
    const statuses = start();
    await put('a', { phase: 'Running' });
    await paused(1);
    expect(statuses.report()).toEqual([
      { name: 'forgejo main', ok: false, message: expect.stringMatching(/: 429: told to$/) },
    ]);
    await statuses.stop();
    expect(forge.requests).toHaveLength(1);
  });

  it('that is GitHub gets a request each 750 ms', async () => {
    const github = await new TestForge('github').start();
    try {
      start({ hook: github.hook() });
      await put('a', { phase: 'Running' });
      await put('b', { phase: 'Running' }, { sha: testSha(2) });
      await expect.poll(() => recorded('a')?.state).toBe('running');
      await system.turn();
      clock.advance(749);
      await system.turn();
      expect(github.requests).toHaveLength(1);
      clock.advance(1);
      await expect.poll(() => recorded('b')?.state).toBe('running');
    } finally {
      await running.pop()?.stop();
      await github.stop();
    }
  });
});

describe('a status that the forge refuses', () => {
  it.each([404, 422])('with %s is not sent again, and says why', async (status) => {
    forge.failNext({ status, body: '{"message":"No commit found"}' });
    start();
    await put('a', { phase: 'Running' });
    await expect.poll(() => recorded('a')).toEqual({ state: 'none', final: true, error: `${status}: No commit found` });
    await put('a', { phase: 'Succeeded' });
    await put('b', { phase: 'Succeeded' }, { sha: testSha(2) });
    await expect.poll(() => recorded('b')?.final).toBe(true);
    expect(forge.requests).toHaveLength(2);
  });

  it('by a redirection is not sent elsewhere', async () => {
    forge.failNext({ status: 307, headers: { location: `${forge.apiUrl}/repos/owner/web/statuses/${testSha(1)}` } });
    start();
    await put('a', { phase: 'Running' });
    await expect.poll(() => recorded('a')).toMatchObject({ final: true, error: expect.stringMatching(/^307/) });
    expect(forge.requests).toHaveLength(1);
  });

  it('for a wrong token is given up after five requests', async () => {
    start({ hook: forge.hook({ token: 'wrong' }) });
    await put('a', { phase: 'Running' });
    for (let asked = 1; asked < 5; asked++) {
      await paused(asked);
      clock.advance(3_600_000);
    }
    await expect.poll(() => recorded('a')).toEqual({ state: 'none', final: true, error: '401: Bad credentials' });
    expect(forge.requests).toHaveLength(5);
  });
});

/** Until the sender has paused this often, and sleeps. */
async function paused(times: number): Promise<void> {
  await expect.poll(() => pauses).toBe(times);
  await system.turn();
}
