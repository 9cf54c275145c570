import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { Clock } from '../../base/clock.ts';
import { type Handler, page, refusal, type Request, runBerth, testNowMs } from '../testing.ts';
import { tarArchive } from '../ways-in/tar-archive.ts';

const directory = await mkdtemp(join(tmpdir(), 'berth-job-'));
afterAll(() => rm(directory, { recursive: true }));

/** Each timer fires at once. */
const hasty: Clock = {
  nowMs: () => testNowMs,
  monotonicMs: () => 0,
  setTimer(_delayMs, fire) {
    let cancelled = false;
    queueMicrotask(() => cancelled || fire());
    return { cancel: () => void (cancelled = true) };
  },
};

const attempt = (number: number, changes: object = {}) => ({
  number,
  instance: `ci-${number}`,
  instanceId: `inst_${number}`,
  createdAtMs: testNowMs - 60_000,
  ...changes,
});
const succeeded = { phase: 'Succeeded', exitCode: 0, attempt: 1, attempts: [attempt(1, { outcome: 'succeeded' })] };

function testJob(status: object, { spec = {}, metadata = {} }: { spec?: object; metadata?: object } = {}): object {
  return {
    kind: 'job',
    schemaVersion: 1,
    metadata: {
      id: 'job_1',
      name: 'ci',
      project: 'default',
      revision: 1,
      generation: 1,
      labels: {},
      createdAtMs: testNowMs - 90_000,
      ...metadata,
    },
    spec: { label: 'tiny', script: 'make', env: {}, artifacts: [], sshKeys: [], ...spec },
    status: { phase: 'Queued', attempt: 0, attempts: [], ...status },
  };
}

const line = (text: string, stream = 'stdout'): string => `2026-01-02T03:04:05.000Z ${stream} F ${text}\n`;

/** A server with one job. `log`: the answers to the requests for the log, in order; the last is repeated. */
function server(
  status: object,
  log: readonly (readonly string[] | 'away')[] = [[]],
  more: Handler = () => undefined,
): Handler {
  let reads = 0;
  return (request) => {
    const given = more(request);
    if (given) return given;
    const { method, path } = request;
    if (method === 'POST' && path === '/v1/jobs') return { status: 201, json: testJob({}) };
    if (path === '/v1/jobs/ci') return { json: testJob(status) };
    if (path !== '/v1/jobs/ci/log') return undefined;
    const answer = log[Math.min(reads++, log.length - 1)] ?? [];
    if (answer === 'away') throw new Error('connection refused');
    return { bytes: answer };
  };
}

const run = (words: string, handler: Handler, more: object = {}) =>
  runBerth(['job', ...words.split(' ')], { handler, clock: hasty, ...more });

const created = (requests: readonly Request[]): { metadata: object; spec: object } => {
  const body = requests.find(({ method, path }) => method === 'POST' && path === '/v1/jobs')?.body;
  return body as { metadata: object; spec: object };
};

describe('berth job run', () => {
  const rows: [words: string[], spec: object][] = [
    [['tiny', '--', 'true'], { label: 'tiny', script: 'true' }],
    [['tiny', '--', 'make test && echo ok'], { label: 'tiny', script: 'make test && echo ok' }],
    [['tiny', '--', 'echo', "it's", 'a b', '-n'], { label: 'tiny', script: String.raw`echo 'it'\''s' 'a b' -n` }],
    [['tiny', 'true'], { label: 'tiny', script: 'true' }],
    [['--', 'true'], { script: 'true' }],
    [
      ['-c', '2', '-m', '1GiB', '-d', '4GiB', '-s', 'small', 'tiny', '--', 'true'],
      { size: 'small', cpus: 2, memoryMiB: 1024, diskGiB: 4, label: 'tiny', script: 'true' },
    ],
    [['tiny', '-e', 'A=1', '-e', 'B=x=y', '--', 'env'], { label: 'tiny', script: 'env', env: { A: '1', B: 'x=y' } }],
    [
      ['tiny', '-t', '10m', '--hold', '30m', '--priority', '-5', '--', 'true'],
      { label: 'tiny', script: 'true', timeoutMs: 600_000, holdOnFailureMs: 1_800_000, priority: -5 },
    ],
    [
      ['tiny', '--retries', '1', '--retry-on', 'failure', '--', 'true'],
      { label: 'tiny', script: 'true', retries: { max: 1, on: ['failure'] } },
    ],
    [
      ['tiny', '--artifacts', 'a/*', '--artifacts', 'b', '--supersedes', 'k', '--driver', 'fake', '--', 'true'],
      { label: 'tiny', script: 'true', artifacts: ['a/*', 'b'], supersedes: 'k', driver: 'fake' },
    ],
    [
      ['tiny', '--repo', 'http://git/x', '--commit', 'A'.repeat(40), '--path', 'ci.sh'],
      { label: 'tiny', repo: { url: 'http://git/x', commit: 'a'.repeat(40), path: 'ci.sh' } },
    ],
  ];
  it.each(rows)('%j asks for it', async (words, spec) => {
    const { requests, exitCode, stderr } = await runBerth(['job', 'run', ...words], {
      handler: server(succeeded),
      clock: hasty,
    });
    expect(stderr).toBe('');
    expect(exitCode).toBe(0);
    expect(created(requests)).toEqual({ metadata: { project: 'default', labels: {} }, spec });
  });

  const refused: [words: string, message: string][] = [
    ['run tiny', 'there is no command to run'],
    ['run tiny --repo http://git/x', '--repo needs --commit'],
    ['run tiny --commit abc', '--commit needs --repo'],
    ['run tiny --path x -- true', '--path needs --repo'],
    ['run tiny more -- true', '"more" is one word too many before --'],
    ['run tiny -t soon -- true', '--timeout cannot be "soon"'],
    ['run tiny --retry-on luck -- true', '--retry-on cannot be "luck"'],
    ['run tiny -o json -- true', '-o needs --detach'],
    ['run -f /nowhere.yaml', 'cannot read the job from /nowhere.yaml: there is no such file'],
  ];
  it.each(refused)('%s is refused', async (words, message) => {
    const { exitCode, stderr, requests } = await run(words, server(succeeded));
    expect(stderr).toContain(message);
    expect([exitCode, requests.length]).toEqual([2, 0]);
  });

  it('names the option that the server refuses', async () => {
    const handler = () => refusal(400, 'InvalidRequest', 'spec.timeoutMs must be <= 604800000', 'spec.timeoutMs');
    expect((await run('run tiny -t 900h -- true', handler)).stderr).toContain('--timeout must be <= 7d');
  });

  it('prints each stream to its own, and ends with the exit code', async () => {
    const failed = {
      phase: 'Failed',
      exitCode: 3,
      attempt: 1,
      attempts: [attempt(1, { outcome: 'failure', exitCode: 3 })],
    };
    const log = [line('one') + line('two', 'stderr'), line('three')];
    const { stdout, stderr, exitCode } = await run('run tiny -- false', server(failed, [log]));
    expect(stdout).toBe('one\nthree\n');
    expect(stderr).toBe('two\nberth: job "ci" failed with exit code 3\n');
    expect(exitCode).toBe(3);
  });

  it('continues at the same byte when the stream ends early, and when the server is away', async () => {
    const all = line('one') + line('two') + line('three');
    const ended = { ...succeeded, attempts: [attempt(1, { outcome: 'succeeded', logBytes: all.length })] };
    const log = [[all.slice(0, 10)], 'away', [all.slice(10, 45), all.slice(45, 50)], [], [all.slice(50)]] as const;
    const { stdout, exitCode, requests } = await run('run tiny -- true', server(ended, log));
    expect(stdout).toBe('one\ntwo\nthree\n');
    expect(exitCode).toBe(0);
    const reads = requests.filter(({ path }) => path.endsWith('/log')).map(({ query }) => query);
    expect(reads.map(({ offset }) => offset)).toEqual(['0', '10', '10', '50', '50']);
    expect(reads[0]).toMatchObject({ attempt: '1', follow: 'true', project: 'default' });
  });

  it('says so when the end of the log never comes', async () => {
    const ended = { ...succeeded, attempts: [attempt(1, { outcome: 'succeeded', logBytes: 99 })] };
    const { stderr, exitCode } = await run('run tiny -- true', server(ended, [[line('one')], []]));
    expect(stderr).toBe(`berth: ${99 - line('one').length} bytes of the log of job "ci" are missing\n`);
    expect(exitCode).toBe(0);
  });

  it('goes on with the next attempt', async () => {
    const lost = attempt(1, { outcome: 'infrastructure', message: 'host h1 is lost' });
    const status = { ...succeeded, attempt: 2, attempts: [lost, attempt(2, { outcome: 'succeeded' })] };
    const { stdout, stderr } = await run('run tiny -- true', server(status, [[line('one')], [line('two')]]));
    expect(stdout).toBe('one\ntwo\n');
    expect(stderr).toBe('berth: attempt 1 of job "ci" failed: host h1 is lost; another follows\n');
  });

  const ends: [name: string, status: object, exitCode: number, message: string][] = [
    [
      'timed out',
      { phase: 'TimedOut', message: 'its time limit of 1 h was over' },
      124,
      'job "ci" timed out: its time limit',
    ],
    [
      'was cancelled',
      { phase: 'Cancelled', message: 'cancelled on request' },
      123,
      'job "ci" was cancelled: cancelled on request',
    ],
    ['had no host', { phase: 'Failed', message: 'its guest did not boot' }, 125, 'could not be carried out: its guest'],
    [
      'succeeded with artifacts that are too large',
      {
        phase: 'Succeeded',
        exitCode: 0,
        reason: 'ArtifactsTooLarge',
        message: 'the artifacts are larger than 9 bytes',
      },
      0,
      'berth: job "ci": the artifacts are larger than 9 bytes',
    ],
    [
      'is held',
      { phase: 'Failed', exitCode: 1, instance: 'ci-1', heldUntilMs: testNowMs + 1_800_000 },
      1,
      'stays for 30m: berth console ci-1; let somebody else in: berth share ci-1; end it early: berth rm ci-1',
    ],
  ];
  it.each(ends)('has its own exit code and message when the job %s', async (_, status, exitCode, message) => {
    const ended = await run(
      'run tiny -- true',
      server({ attempt: 1, attempts: [attempt(1, { outcome: 'failure' })], ...status }),
    );
    expect(ended.stderr).toContain(message);
    expect(ended.exitCode).toBe(exitCode);
  });

  it('cancels the job at Ctrl-C, and waits for its end', async () => {
    const interruption = new AbortController();
    let cancelled = false;
    const status = (): object =>
      cancelled
        ? {
            phase: 'Cancelled',
            message: 'cancelled on request',
            attempt: 1,
            attempts: [attempt(1, { outcome: 'cancelled' })],
          }
        : {};
    const handler: Handler = (request) => {
      if (request.path === '/v1/jobs/ci/cancel') {
        cancelled = true;
        return { json: testJob(status()) };
      }
      return server(status(), [[line('one')]])(request);
    };
    const onOutput = (): void => interruption.abort();
    const { stderr, exitCode } = await run('run tiny -- sleep', handler, {
      interruption: interruption.signal,
      onOutput,
    });
    expect(stderr).toContain('berth: cancelling job "ci"; Ctrl-C again leaves it alone');
    expect(exitCode).toBe(123);
  });

  it('ends when the job was removed', async () => {
    const gone: Handler = ({ method, path }) =>
      method === 'POST' || path.endsWith('/log') ? undefined : refusal(404, 'NotFound', 'there is no job "ci"');
    const { stderr, exitCode } = await run('run tiny -- true', server(succeeded, [[]], gone));
    expect(stderr).toContain('job "ci" was removed before its end was known');
    expect(exitCode).toBe(7);
  });

  it('leaves it alone with --detach', async () => {
    const detached = await run('run tiny --detach -n ci -l team=web -- true', server(succeeded));
    expect(detached).toMatchObject({ stdout: 'ci\n', stderr: '', exitCode: 0 });
    expect(created(detached.requests).metadata).toEqual({ name: 'ci', project: 'default', labels: { team: 'web' } });
    expect(detached.requests).toHaveLength(1);
    const json = await run('run tiny --detach -o json -- true', server(succeeded));
    expect(JSON.parse(json.stdout)).toMatchObject({ metadata: { name: 'ci' } });
  });

  it('shows what it waits for on a terminal, until there is output', async () => {
    const waiting = { queuePosition: 2, estimatedStartMs: testNowMs + 120_000 };
    let looks = 0;
    const handler: Handler = (request) => {
      if (request.path === '/v1/jobs/ci') looks += 1;
      return server(looks > 4 ? succeeded : waiting)(request);
    };
    const { stderr } = await run('run tiny -- true', handler, { errorsOnTerminal: true });
    expect(stderr).toContain('job ci\n');
    expect(stderr).toContain('ci: Queued, 2nd in the queue, starts in about 2m');
  });
});

describe('berth job run -f', () => {
  const file = async (text: string): Promise<string> => {
    const path = join(directory, 'job.yaml');
    await writeFile(path, text);
    return path;
  };

  it.each([
    ['a spec', 'label: tiny\nscript: make\ntimeoutMs: 5000\n', {}],
    [
      'a whole job',
      'kind: job\nmetadata: {name: ci, labels: {a: b}}\nspec: {label: tiny, script: make, timeoutMs: 5000}\n',
      { name: 'ci', labels: { a: 'b' } },
    ],
  ])('takes %s', async (_, text, metadata) => {
    const { requests } = await run(`run -f ${await file(text)}`, server(succeeded));
    const spec = { label: 'tiny', script: 'make', timeoutMs: 5000 };
    expect(created(requests)).toEqual({ metadata: { project: 'default', labels: {}, ...metadata }, spec });
  });

  it('lets flags override it', async () => {
    const text = 'image: tiny\nscript: make\nenv: {A: "1", B: "2"}\nretries: {max: 5, on: [failure]}\n';
    const { requests } = await run(`run -f ${await file(text)} debian -e B=3 --retries 1 -- ls`, server(succeeded));
    expect(created(requests).spec).toEqual({
      label: 'debian',
      script: 'ls',
      env: { A: '1', B: '3' },
      retries: { max: 1, on: ['failure'] },
    });
  });

  it.each([
    [
      'an unknown field',
      'label: tiny\nscript: x\ntimeoutMS: 5\n',
      'the spec of a job has no field "timeoutMS"\n  did you mean "timeoutMs"?',
    ],
    ['an unknown field of the resource', 'spec: {script: x}\nmetadat: {}\n', 'a job has no field "metadat"'],
    [
      'an unknown field of the metadata',
      'metadata: {nme: x}\nspec: {script: x}\n',
      'the metadata of a job has no field "nme"\n  did you mean "name"?',
    ],
    [
      'another project than that of the command',
      'metadata: {project: web}\nspec: {script: x}\n',
      'the file is of project "web", and the command of project "default"\n  add --project web',
    ],
    ['another kind', 'kind: instance\nspec: {}\n', 'kind must be job, not "instance"'],
    ['no spec', 'kind: job\n', 'spec is missing'],
    ['a list', '- a\n', 'has no fields of a job'],
    ['a field twice', 'label: a\nlabel: b\n', 'Map keys must be unique'],
    ['an alias', 'label: &a tiny\nscript: *a\n', 'cannot read'],
  ])('refuses %s', async (_, text, message) => {
    const { stderr, exitCode, requests } = await run(`run -f ${await file(text)}`, server(succeeded));
    expect(stderr).toContain(message);
    expect([exitCode, requests.length]).toEqual([2, 0]);
  });

  it('keeps the name of a field of the file that the server refuses', async () => {
    const handler = () => refusal(400, 'InvalidRequest', 'spec.timeoutMs must be integer', 'spec.timeoutMs');
    const { stderr } = await run(`run -f ${await file('script: x\ntimeoutMs: soon\n')}`, handler);
    expect(stderr).toContain('spec.timeoutMs must be integer');
  });
});

describe('berth job', () => {
  it('ls shows the jobs, the newest last, and the time left of a hold', async () => {
    const old = testJob(
      { phase: 'Failed', exitCode: 1, heldUntilMs: testNowMs + 600_000 },
      { metadata: { name: 'old', createdAtMs: 1 } },
    );
    const { stdout } = await run('ls', ({ path }) =>
      path === '/v1/jobs' ? page([testJob(succeeded), old]) : undefined,
    );
    expect(stdout).toMatch(/^NAME +PHASE +LABEL +.*LEFT[^\n]*\nold +Failed +tiny .* 10m .*\nci +Succeeded/);
    expect((await run('ls', () => page([]))).stderr).toBe('no jobs; run one: berth job run LABEL -- COMMAND\n');
  });

  it('ls and show say what a job waits for', async () => {
    const waits = testJob({
      queuePosition: 11,
      estimatedStartMs: testNowMs + 300_000,
      message: 'project full has 4 of 4 INSTANCES',
    });
    const why = '11th in the queue, starts in about 5m, project full has 4 of 4 INSTANCES';
    const handler: Handler = ({ path }) => (path === '/v1/jobs' ? page([waits]) : { json: waits });
    expect((await run('ls', handler)).stdout).toContain(why);
    expect((await run('show ci', handler)).stdout).toContain(`ci  Queued\n  why      ${why}\n`);
  });

  it('show has the attempts, the instance and what to do next', async () => {
    const lost = attempt(1, {
      outcome: 'infrastructure',
      message: 'host h1 is lost',
      host: 'h1',
      endedAtMs: testNowMs - 30_000,
    });
    const status = { phase: 'Running', attempt: 2, instance: 'ci-2', attempts: [lost, attempt(2, { host: 'h2' })] };
    const { stdout } = await run('show ci', server(status));
    expect(stdout).toContain('ci  Running\n');
    expect(stdout).toContain('attempt   1  ci-1 on h1  infrastructure after 30s: host h1 is lost\n');
    expect(stdout).toContain('attempt   2  ci-2 on h2  under way for 60s\n');
    expect(stdout).toContain('instance  ci-2\n');
    expect(stdout).toContain('berth job logs -f ci, berth job cancel ci\n');
  });

  it('logs prints one attempt, and follows all', async () => {
    const status = {
      ...succeeded,
      attempt: 2,
      attempts: [attempt(1, { outcome: 'failure' }), attempt(2, { outcome: 'succeeded' })],
    };
    const first = await run('logs ci --attempt 1 --timestamps', server(status, [[line('one')]]));
    expect(first.stdout).toBe('2026-01-02T03:04:05.000Z one\n');
    expect(first.requests.at(-1)?.query).toEqual({ attempt: '1', project: 'default' });
    const last = await run('logs -f ci', server(status, [[line('two')]]));
    expect(last.stdout).toBe('two\n');
    expect(last.requests.at(-2)?.query).toMatchObject({ attempt: '2', follow: 'true' });
    const none = await run('logs ci', server({}));
    expect(none.stderr).toBe('job "ci" has no output yet: Queued\n');
  });

  it('logs escapes what could harm a terminal', async () => {
    const terminal = { columns: 80, rows: 24 };
    const { stdout } = await run('logs ci', server(succeeded, [[line('\u001b[31mred\u001b[2J')]]), { terminal });
    expect(stdout).toBe('\u001b[31mred\\x1b[2J\n\u001b[0m');
  });

  it.each([
    ['cancel ci', 'POST', '/v1/jobs/ci/cancel', 'ci is being cancelled\n'],
    ['retry ci', 'POST', '/v1/jobs/ci/retry', 'ci\n'],
    ['rm ci', 'DELETE', '/v1/jobs/ci', 'ci is being removed\n'],
  ])('%s', async (words, method, path, said) => {
    const { stdout, requests } = await run(words, (request) =>
      request.method === method && request.path === path ? { json: testJob({}) } : undefined,
    );
    expect(stdout).toBe(said);
    expect(requests[0]?.query).toEqual({ project: 'default' });
  });

  it.each(['show', 'logs', 'cancel', 'retry', 'rm'])('%s says what to do when there is no such job', async (verb) => {
    const { stderr, exitCode } = await run(`${verb} nope`, () => refusal(404, 'NotFound', 'there is no job "nope"'));
    expect(stderr).toMatch(/^berth: cannot .* job "nope": there is no job "nope"\n {2}"berth job ls" shows the jobs/);
    expect(exitCode).toBe(3);
  });

  it('is completed with the names of jobs', async () => {
    const said: string[] = [];
    const log = vi.spyOn(console, 'log').mockImplementation((text: string) => void said.push(text)); // the library's only way to speak
    const handler: Handler = ({ path }) => (path === '/v1/jobs' ? page([testJob({})]) : undefined);
    await runBerth(['complete', '--', 'job', 'logs', ''], { handler });
    log.mockRestore();
    expect(said[0]).toMatch(/^ci\b/);
  });
});

describe('berth job artifacts', () => {
  const archive: Handler = ({ path }) =>
    path === '/v1/jobs/ci/artifacts' ? { bytes: tarArchive(join(directory, 'build'), 'build') } : undefined;

  it('lists and unpacks them', async () => {
    await writeFile(join(directory, 'build'), 'content');
    expect((await run('artifacts ls ci', archive)).stdout).toBe('SIZE  NAME\n 7 B  build\n');
    const to = join(directory, 'out');
    const got = await run(`artifacts get ci -o ${to} --attempt 2`, archive);
    expect(got).toMatchObject({ stderr: `${to}: 1 file, 7 B\n`, exitCode: 0 });
    expect(got.requests[0]?.query).toEqual({ project: 'default', attempt: '2' });
    expect(await readFile(join(to, 'build'), 'utf8')).toBe('content');
    const tar = join(directory, 'all.tar');
    await run(`artifacts get ci -o ${tar}`, archive);
    expect((await readFile(tar)).length % 512).toBe(0);
  });

  it('leaves no file where there are none', async () => {
    const to = join(directory, 'none.tar');
    const none = () => refusal(404, 'NotFound', 'job "ci" keeps no artifacts: its spec.artifacts is empty');
    const { stderr, exitCode } = await run(`artifacts get ci -o ${to}`, none);
    expect(stderr).toBe(
      'berth: cannot read the artifacts of job "ci": job "ci" keeps no artifacts: its spec.artifacts is empty\n  see: berth job ls, berth job show ci\n',
    );
    expect(exitCode).toBe(3);
    await expect(readFile(to)).rejects.toThrow('ENOENT');
  });
});
