import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../api/errors.ts';
import { keys } from '../../state/keys.ts';
import type { Cache } from '../../state/cache.ts';
import { commitPlan, testCache, testContext, testImage } from '../../testing.ts';
import { acceptJobRequest, readJobRequest, type ReadRequest, refusalOf } from './job-request.ts';

const id = '0b2a1f64-6a5e-4a53-9f0a-6f6f5e1d2c3b';
const commit = 'c0ffee'.padEnd(40, '0');
const sound = {
  schema_version: 'jobrequest.v1',
  request_id: id,
  source: 'github',
  repo_url: 'http://git.test/app.git',
  commit_sha: commit,
  workflow_path: '.solstice/job.sh',
  workflow_job_id: 'build',
  runs_on: 'ubuntu-22.04',
  submitted_at: '2026-11-26T03:00:00Z',
};

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const bytesOf = (body: unknown): Uint8Array =>
  new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body));
const read = (body: unknown, contentEncoding?: string): ReadRequest =>
  readJobRequest(bytesOf(body), { hash: sha256, contentEncoding });

function refusal(decide: () => unknown): { reason: string; message: string; field: string | undefined } {
  try {
    decide();
  } catch (error) {
    const refused = refusalOf(error);
    if (refused) return { ...refused, field: error instanceof ApiError ? error.field : undefined };
    throw error;
  }
  throw new Error('it was taken');
}

describe('a JobRequest is read', () => {
  const { schema_version, request_id, source, repo_url, commit_sha, submitted_at } = sound;
  const least = { schema_version, request_id, source, repo_url, commit_sha, submitted_at };
  it.each<[string, unknown, object]>([
    ['with all its fields', sound, sound],
    ['with the least', least, least],
    ['with nulls for what is optional', { ...least, runs_on: null, workflow_path: null, workflow_job_id: null }, least],
    ['with an empty label', { ...least, runs_on: '' }, least],
    ['with fields that are not known', { ...least, priority: 3 }, { ...least, priority: 3 }],
    ['with an id in capitals', { ...least, request_id: id.toUpperCase() }, least],
    ['with a commit in capitals', { ...least, commit_sha: commit.toUpperCase() }, least],
    [
      'with a commit of SHA-256',
      { ...least, commit_sha: `${commit}${'0'.repeat(24)}` },
      { ...least, commit_sha: `${commit}${'0'.repeat(24)}` },
    ],
    [
      'from the future',
      { ...least, submitted_at: '2199-01-01T00:00:00.123456+02:00' },
      { ...least, submitted_at: '2199-01-01T00:00:00.123456+02:00' },
    ],
  ])('%s', (_name, body, expected) => {
    expect(read(body).request).toEqual(expected);
  });

  it('whatever says that it is plain', () => expect(read(sound, 'UTF-8').request).toEqual(sound));
});

describe('a JobRequest is refused', () => {
  const deep = `{"a":${'['.repeat(10_000)}`;
  it.each<[string, unknown, string, string?]>([
    ['without a byte', '', 'NotJson'],
    ['that is not JSON', 'make all', 'NotJson'],
    ['that is an array', [sound], 'InvalidRequest', 'body'],
    ['with a byte order mark', `\ufeff${JSON.stringify(sound)}`, 'NotJson'],
    ['with a key twice', JSON.stringify(sound).replace('{', '{"source":"manual",'), 'DuplicateKey'],
    ['of depth 10,000', deep, 'TooDeep'],
    ['of 1 MiB and a byte', JSON.stringify(sound).padEnd(1024 ** 2 + 1), 'TooLarge'],
    ['without a version', { ...sound, schema_version: undefined }, 'UnknownVersion', 'schema_version'],
    ['of version 2', { ...sound, schema_version: 'jobrequest.v2' }, 'UnknownVersion', 'schema_version'],
    ['with null as its id', { ...sound, request_id: null }, 'InvalidRequest', 'request_id'],
    ['with an id that is no UUID', { ...sound, request_id: 'build-7' }, 'InvalidRequest', 'request_id'],
    ['from an unknown source', { ...sound, source: 'gitlab' }, 'InvalidRequest', 'source'],
    ['with a commit of 39 digits', { ...sound, commit_sha: 'a'.repeat(39) }, 'InvalidRequest', 'commit_sha'],
    ['with a commit of 41 digits', { ...sound, commit_sha: 'a'.repeat(41) }, 'InvalidRequest', 'commit_sha'],
    ['with a branch', { ...sound, commit_sha: 'main' }, 'InvalidRequest', 'commit_sha'],
    ['with a file URL', { ...sound, repo_url: 'file:///etc' }, 'InvalidRequest', 'repo_url'],
    ['with an ssh URL', { ...sound, repo_url: 'ssh://git@git.test/app' }, 'InvalidRequest', 'repo_url'],
    ['with an ext URL', { ...sound, repo_url: 'ext::sh -c id' }, 'InvalidRequest', 'repo_url'],
    ['with an option for a URL', { ...sound, repo_url: '--upload-pack=id' }, 'InvalidRequest', 'repo_url'],
    ['with a line break in its URL', { ...sound, repo_url: 'http://git.test/\napp' }, 'InvalidRequest', 'repo_url'],
    [
      'with a password in its URL',
      { ...sound, repo_url: 'http://u:secret@git.test/app' },
      'InvalidRequest',
      'repo_url',
    ],
    ['with a path upwards', { ...sound, workflow_path: 'a/../../x' }, 'InvalidRequest', 'workflow_path'],
    ['with an absolute path', { ...sound, workflow_path: '/etc/passwd' }, 'InvalidRequest', 'workflow_path'],
    ['with NUL in its path', { ...sound, workflow_path: 'a\u0000b' }, 'InvalidRequest', 'workflow_path'],
    ['with several labels', { ...sound, runs_on: ['self-hosted', 'linux'] }, 'InvalidRequest', 'runs_on'],
    ['with a number for a time', { ...sound, submitted_at: 1_764_126_000 }, 'InvalidRequest', 'submitted_at'],
    ['with a time that is none', { ...sound, submitted_at: '2026-13-41T25:00:00Z' }, 'InvalidRequest', 'submitted_at'],
  ])('%s', (_name, body, reason, field) => {
    const refused = refusal(() => read(body));
    expect(refused).toMatchObject({ reason, field });
    expect(refused.message).not.toContain('secret');
  });

  it('with bytes that are not UTF-8', () => {
    const bytes = Uint8Array.of(...bytesOf(sound).slice(0, -2), 0xff, 0x22, 0x7d);
    expect(refusal(() => readJobRequest(bytes, { hash: sha256 })).reason).toBe('NotUtf8');
  });

  it('when it is compressed', () => {
    expect(refusal(() => read(sound, 'gzip'))).toMatchObject({ reason: 'UnsupportedEncoding' });
  });
});

describe('two bodies are the same request', () => {
  const digest = read(sound).digest;
  it.each<[string, unknown, boolean]>([
    ['in another order of keys', Object.fromEntries(Object.entries(sound).reverse()), true],
    ['sent at another time', { ...sound, submitted_at: '2026-11-26T04:00:00Z' }, true],
    ['with a null more', { ...sound, comment: null }, true],
    ['with the id in capitals', { ...sound, request_id: id.toUpperCase() }, true],
    ['for another commit', { ...sound, commit_sha: 'a'.repeat(40) }, false],
    ['with a field more', { ...sound, comment: 'again' }, false],
    ['without its label', { ...sound, runs_on: undefined }, false],
  ])('%s: %#', (_name, body, same) => {
    expect(read(body).digest === digest).toBe(same);
  });
});

describe('a JobRequest', () => {
  const ctx = testContext();
  const fleet = (aliases = ['ubuntu-22.04']): Cache => testCache([testImage('jammy', { aliases })]);
  const accept = (cache: Cache, body: unknown = sound, more: { project?: string; replyTo?: string } = {}) => {
    const decision = acceptJobRequest(cache, { project: 'default', ...more, ...read(body) }, ctx);
    commitPlan(cache, decision.plan);
    return decision;
  };

  it('becomes a job that bears its id', () => {
    const cache = fleet();
    const { key, changed } = accept(cache, sound, { replyTo: 'answers' });
    expect({ key, changed }).toEqual({ key: keys.job('default', `req-${id}`), changed: true });
    expect(cache.get('job', key)?.value.spec).toMatchObject({
      label: 'ubuntu-22.04',
      repo: { url: sound.repo_url, commit, path: '.solstice/job.sh' },
      request: {
        requestId: id,
        source: 'github',
        workflowJobId: 'build',
        submittedAt: sound.submitted_at,
        replyTo: 'answers',
      },
      timeoutMs: 3_600_000,
    });
  });

  it('without runs_on takes the default label', () => {
    const cache = fleet(['default']);
    const { key } = accept(cache, { ...sound, runs_on: undefined });
    expect(cache.get('job', key)?.value.spec.label).toBeUndefined();
  });

  it.each([
    ['an unknown runs_on', 'plan9'],
    ['a runs_on that can be no name', 'Ubuntu_22'],
    ['no runs_on and no default label', undefined],
  ])('with %s is refused', (_name, label) => {
    expect(refusal(() => accept(fleet(), { ...sound, runs_on: label }))).toMatchObject({
      reason: 'UnknownLabel',
      field: 'runs_on',
    });
  });

  it('for an image of containers is refused', () => {
    const cache = testCache([testImage('c', { aliases: ['ubuntu-22.04'], format: 'container' })]);
    expect(refusal(() => accept(cache)).reason).toBe('JobRefused');
  });

  it('that comes again makes no second job', () => {
    const cache = fleet();
    const first = accept(cache);
    const again = accept(cache, { ...sound, request_id: id.toUpperCase(), submitted_at: '2026-11-26T05:00:00Z' });
    expect(again).toMatchObject({ changed: false, key: first.key });
    expect(cache.count('job')).toBe(1);
  });

  it('that comes again when its job is deleted makes none either', () => {
    const cache = fleet();
    const { key } = accept(cache);
    commitPlan(cache, { changes: [{ key, ifRevision: cache.get('job', key)?.revision ?? 0, value: null }] });
    expect(accept(cache)).toMatchObject({ changed: false, key });
    expect(refusal(() => accept(cache, { ...sound, source: 'manual' })).reason).toBe('RequestIdReused');
    expect(cache.count('job')).toBe(0);
  });

  it('with the id of another is refused', () => {
    const cache = fleet();
    accept(cache);
    expect(refusal(() => accept(cache, { ...sound, commit_sha: 'a'.repeat(40) }))).toMatchObject({
      reason: 'RequestIdReused',
      field: 'request_id',
    });
  });

  it('with the same id in another project is another', () => {
    const cache = fleet();
    accept(cache);
    expect(accept(cache, sound, { project: 'other' }).changed).toBe(true);
    expect(cache.count('job')).toBe(2);
  });
});
