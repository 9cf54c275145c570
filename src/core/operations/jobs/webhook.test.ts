import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Job } from '../../../api/resources/job.ts';
import type { Cache } from '../../state/cache.ts';
import { keys } from '../../state/keys.ts';
import { commitPlan, testCache, testContext, testImage } from '../../testing.ts';
import { deleteJob, retryJob } from './job.ts';
import { identityOf, readEvent } from './webhook-event.ts';
import { decideWebhook, type Hook, type WebhookDecision } from './webhook.ts';

const sha = (digit: string | number): string => String(digit).repeat(40);
const repository = { id: 7, full_name: 'owner/Web.App', clone_url: 'https://forge.test/owner/Web.App.git' };
const hook: Hook = {
  name: 'main',
  forge: 'github',
  project: 'ci',
  cloneBaseUrl: 'https://forge.test',
  rules: [
    { repository: 'owner/*', branches: ['main'], events: ['push', 'pull_request'], env: { LEVEL: '1' }, size: 'small' },
    { repository: 'owner/*', branches: ['main'], events: ['push'], label: 'other', workflowPath: 'ci/other.sh' },
  ],
};
const size = { kind: 'size', schemaVersion: 1, spec: { cpus: 1, memoryMiB: 256 }, status: {} };

function fleet(): Cache {
  const metadata = { id: 'siz_1', name: 'small', project: '', revision: 0, generation: 1, labels: {}, createdAtMs: 0 };
  return testCache([
    testImage('default'),
    testImage('other'),
    { ...size, metadata } as never, // a record of a size
  ]);
}

const pushBody = (before: string | number, after: string | number, more: object = {}): object => ({
  ref: 'refs/heads/main',
  before: sha(before),
  after: sha(after),
  commits: [],
  repository,
  ...more,
});
const pullBody = (action: string, head: object = {}, more: object = {}): object => ({
  action,
  number: 3,
  pull_request: { head: { sha: sha('a'), ref: 'topic', repo: { id: 7 }, ...head }, base: { ref: 'main' } },
  repository,
  ...more,
});

let deliveries = 0;
interface Options {
  readonly id?: string;
  readonly with?: Partial<Hook>;
}

function decide(
  cache: Cache,
  name: 'push' | 'pull_request',
  body: object,
  { id = `d${++deliveries}`, with: changes }: Options = {},
): WebhookDecision {
  const event = readEvent('github', name, body);
  if ('ignored' in event) throw new Error(event.ignored);
  const eventKey = Buffer.from(identityOf('main', event)).toString('hex').slice(-64).padStart(64, '0');
  const asked = { hook: { ...hook, ...changes }, delivery: { id, eventKey, event }, patient: false };
  return decideWebhook(cache, asked, testContext({ newId: (prefix) => `${prefix}_${++deliveries}` }));
}

function deliver(...given: Parameters<typeof decide>): WebhookDecision {
  const decision = decide(...given);
  commitPlan(given[0], decision.plan);
  return decision;
}

function jobsIn(cache: Cache): Job[] {
  return [...cache.list('job')].map(({ value }) => value);
}

function cancelled(cache: Cache, name: string | undefined): string | undefined {
  return cache.get('job', keys.job('ci', name ?? ''))?.value.status.cancel?.message;
}

describe('a push', () => {
  it('becomes a job for each rule that matches', () => {
    const cache = fleet();
    const decision = deliver(cache, 'push', pushBody(0, 1));
    expect(decision.outcome).toBe('created');
    expect(decision.jobs).toEqual([
      expect.stringMatching(/^web-app-[0-9a-f]{10}$/),
      expect.stringMatching(/^web-app-[0-9a-f]{10}-2$/),
    ]);
    expect(jobsIn(cache).map(({ spec }) => spec)).toMatchObject([
      {
        size: 'small',
        env: { LEVEL: '1' },
        repo: { url: 'https://forge.test/owner/Web.App.git', commit: sha(1) },
        forge: { hook: 'main', forge: 'github', repositoryId: '7', sha: sha(1), context: 'berth/push/default' },
      },
      { label: 'other', repo: { path: 'ci/other.sh' }, forge: { context: 'berth/push/other/ci/other.sh' } },
    ]);
  });

  it.each<[string, string]>([
    ['the same delivery', 'd-1'],
    ['the same event under another delivery id', 'd-2'],
  ])('has one effect when it comes again as %s', (_, id) => {
    const cache = fleet();
    const first = deliver(cache, 'push', pushBody(0, 1), { id: 'd-1' });
    const second = deliver(cache, 'push', pushBody(0, 1), { id });
    expect(second).toMatchObject({ outcome: 'repeated', jobs: first.jobs });
    expect(jobsIn(cache)).toHaveLength(2);
  });

  it('has no effect under the delivery id of another event', () => {
    const cache = fleet();
    const first = deliver(cache, 'push', pushBody(0, 1), { id: 'd-1' });
    expect(deliver(cache, 'push', pushBody(1, 2), { id: 'd-1' })).toMatchObject({
      outcome: 'repeated',
      jobs: first.jobs,
    });
  });

  it('has no second effect after its jobs are deleted', () => {
    const cache = fleet();
    const { jobs } = deliver(cache, 'push', pushBody(0, 1), { id: 'd-1' });
    for (const name of jobs) {
      commitPlan(cache, deleteJob(cache, { project: 'ci', name }, testContext()).plan);
      const key = keys.job('ci', name);
      commitPlan(cache, { changes: [{ key, ifRevision: cache.get('job', key)?.revision ?? 0, value: null }] });
    }
    expect(deliver(cache, 'push', pushBody(0, 1))).toMatchObject({ outcome: 'repeated', jobs: [] });
    expect(jobsIn(cache)).toEqual([]);
  });

  it('supersedes the jobs of the commit before, each by its own rule', () => {
    const cache = fleet();
    const first = deliver(cache, 'push', pushBody(0, 1));
    const second = deliver(cache, 'push', pushBody(1, 2));
    expect(first.jobs.map((name) => cancelled(cache, name))).toEqual(
      second.jobs.map((name) => `job "${name}" is for a newer commit`),
    );
    expect(second.jobs.map((name) => cancelled(cache, name))).toEqual([undefined, undefined]);
  });

  it('that arrives late is superseded at once', () => {
    const cache = fleet();
    const second = deliver(cache, 'push', pushBody(1, 2));
    const first = deliver(cache, 'push', pushBody(0, 1));
    expect(first.outcome).toBe('created');
    expect(first.jobs.map((name) => cancelled(cache, name))).toEqual(
      second.jobs.map((name) => `job "${name}" is for a newer commit`),
    );
  });

  it('in whatever order pushes arrive, only the jobs of the newest commit go on', () => {
    const bodies = [1, 2, 3, 4, 5].map((number) => pushBody(number - 1, number));
    fc.assert(
      fc.property(fc.shuffledSubarray(bodies, { minLength: bodies.length }), (arrivals) => {
        const cache = fleet();
        for (const body of arrivals) deliver(cache, 'push', body);
        const live = jobsIn(cache).filter(({ status }) => status.cancel === undefined);
        expect(jobsIn(cache)).toHaveLength(10);
        expect(live.map(({ spec }) => spec.forge?.sha)).toEqual([sha(5), sha(5)]);
      }),
      { numRuns: 30 },
    );
  });

  it('that was decided without the job of another push to the repository does not commit', () => {
    const cache = fleet();
    const [first, second] = [decide(cache, 'push', pushBody(0, 1)), decide(cache, 'push', pushBody(1, 2))];
    commitPlan(cache, first.plan);
    expect(() => commitPlan(cache, second.plan)).toThrow('does not hold: gates/webhook/main/7');
  });

  it('leaves other branches, repositories and hooks alone', () => {
    const cache = fleet();
    const rules = hook.rules.map((rule) => ({ ...rule, branches: ['**'] }));
    const first = deliver(cache, 'push', pushBody(0, 1), { with: { rules } });
    deliver(cache, 'push', pushBody(1, 2, { ref: 'refs/heads/topic' }), { with: { rules } });
    deliver(cache, 'push', pushBody(1, 3, { repository: { ...repository, id: 8 } }), { with: { rules } });
    deliver(cache, 'push', pushBody(1, 4), { with: { rules, name: 'second' } });
    expect(first.jobs.map((name) => cancelled(cache, name))).toEqual([undefined, undefined]);
  });

  it('is not repeated by the retry of its job', () => {
    const cache = fleet();
    const { jobs } = deliver(cache, 'push', pushBody(0, 1), { id: 'd-1' });
    const [name = ''] = jobs;
    const entry = cache.get('job', keys.job('ci', name));
    const ended = { ...entry?.value, status: { ...entry?.value.status, phase: 'Failed' } } as Job;
    const { key, revision: ifRevision } = entry ?? { key: '', revision: 0 };
    commitPlan(cache, { changes: [{ key, ifRevision, value: ended }] });
    commitPlan(cache, retryJob(cache, { project: 'ci', name }, testContext()).plan);
    expect(deliver(cache, 'push', pushBody(0, 1), { id: 'd-1' }).jobs).toEqual(jobs);
  });

  it.each([
    ['of a forged server', 'https://evil.test/owner/Web.App.git'],
    ['of a longer host', 'https://forge.test.evil.test/owner/Web.App.git'],
    ['of another repository', 'https://forge.test/owner/secret.git'],
    ['without TLS', 'http://forge.test/owner/Web.App.git'],
  ])('with a clone URL %s is refused', (_, clone_url) =>
    expect(() => deliver(fleet(), 'push', pushBody(0, 1, { repository: { ...repository, clone_url } }))).toThrow(
      expect.objectContaining({ code: 'InvalidRequest', field: 'repository.clone_url' }),
    ),
  );

  it('of another branch asks for nothing', () =>
    expect(deliver(fleet(), 'push', pushBody(0, 1, { ref: 'refs/heads/topic' }))).toMatchObject({
      outcome: 'nothing',
      reason: 'no rule matches',
    }));
});

describe('a pull request', () => {
  it('becomes a job, and one for each later commit', () => {
    const cache = fleet();
    const opened = deliver(cache, 'pull_request', pullBody('opened'));
    const changed = deliver(
      cache,
      'pull_request',
      pullBody('synchronize', { sha: sha('b') }, { before: sha('a'), after: sha('b') }),
    );
    expect(jobsIn(cache)[0]?.spec.forge).toMatchObject({
      ref: 'refs/pull/3/head',
      context: 'berth/pull_request/default',
    });
    expect(cancelled(cache, opened.jobs[0])).toBe(`job "${changed.jobs[0]}" is for a newer commit`);
  });

  it('that is opened again has the job that still runs', () => {
    const cache = fleet();
    const { jobs } = deliver(cache, 'pull_request', pullBody('opened'));
    expect(deliver(cache, 'pull_request', pullBody('reopened'))).toMatchObject({ outcome: 'repeated', jobs });
  });

  const fork = { repo: { id: 8 } };
  const approved = { with: { approvalLabel: 'ok-to-test' } };
  it.each<[string, object, Options, string | undefined]>([
    ['of a fork gets no job', pullBody('opened', fork), {}, 'pull requests from forks get no jobs'],
    [
      'of a fork that is gone gets no job',
      pullBody('opened', { repo: null }),
      {},
      'pull requests from forks get no jobs',
    ],
    [
      'of a fork waits for approval',
      pullBody('opened', fork),
      approved,
      'a pull request from a fork needs the label "ok-to-test"',
    ],
    [
      'of a fork with another label waits',
      pullBody('labeled', fork, { label: { name: 'bug' } }),
      approved,
      'a pull request from a fork needs the label "ok-to-test"',
    ],
    [
      'of a fork with the label gets one',
      pullBody('labeled', fork, { label: { name: 'ok-to-test' } }),
      approved,
      undefined,
    ],
    [
      'of its own repository gets none by a label',
      pullBody('labeled', {}, { label: { name: 'ok-to-test' } }),
      approved,
      'a label asks for nothing',
    ],
  ])('%s', (_, body, options, reason) => expect(deliver(fleet(), 'pull_request', body, options).reason).toBe(reason));

  it('of a fork gets no variables', () => {
    const cache = fleet();
    deliver(cache, 'pull_request', pullBody('labeled', fork, { label: { name: 'ok-to-test' } }), approved);
    expect(jobsIn(cache).map(({ spec }) => spec.env)).toEqual([{}]);
  });
});
