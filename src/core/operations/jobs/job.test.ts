import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../api/errors.ts';
import { parse } from '../../../api/parse.ts';
import { JobSpec } from '../../../api/resources/job.ts';
import { testCache, testContext, testImage } from '../../testing.ts';
import { createJob } from './job.ts';

const commit = 'a'.repeat(40);
const url = 'https://forge.example/team/app.git';
const cache = testCache([
  testImage(),
  testImage('web', { format: 'container', source: 'docker://registry/web:1' }),
  testImage('plain', { nocloud: false }),
]);

function refusalOf(spec: unknown): string {
  try {
    const input = { project: 'default', name: 'a', labels: {}, spec: parse(JobSpec, spec, 'spec') };
    createJob(cache, input, testContext());
  } catch (error) {
    if (error instanceof ApiError) return `${error.field}: ${error.message}`;
    throw error;
  }
  return '';
}

describe('a job', () => {
  it.each<[string, unknown]>([
    ['a script', { label: 'tiny', script: 'make' }],
    ['a commit', { label: 'tiny', repo: { url, commit } }],
    ['a longer commit', { label: 'tiny', repo: { url, commit: 'b'.repeat(64), path: 'ci/run.sh' } }],
    ['a script in a commit', { image: 'tiny', script: 'make', repo: { url, commit } }],
  ])('is accepted with %s', (_, spec) => expect(refusalOf(spec)).toBe(''));

  it.each<[string, unknown, string]>([
    ['nothing to run', { label: 'tiny' }, 'spec.script: a job needs a script, or a repository'],
    ['an empty script', { label: 'tiny', script: '' }, 'spec.script'],
    ['two images', { label: 'tiny', image: 'tiny', script: 'x' }, 'spec.label: a job has an image or a label'],
    ['no label and no default', { script: 'x' }, 'spec.label: this job names no label, and there is no default label'],
    [
      'an unknown label',
      { label: 'tinny', script: 'x' },
      'spec.label: there is no image "tinny"; did you mean "tiny"?',
    ],
    ['an unknown image', { image: 'tinny', script: 'x' }, 'spec.image: there is no image "tinny"'],
    ['an image of containers', { label: 'web', script: 'x' }, 'spec.label: image "web" is of containers'],
    [
      'an image without user-data',
      { label: 'plain', script: 'x' },
      'spec.label: image "plain" takes no cloud-init data',
    ],
    ['an unknown size', { label: 'tiny', script: 'x', size: 'huge' }, 'spec.size: there is no size "huge"'],
    ['a branch for a commit', { label: 'tiny', repo: { url, commit: 'main' } }, 'spec.repo.commit'],
    ['a short commit', { label: 'tiny', repo: { url, commit: 'a'.repeat(39) } }, 'spec.repo.commit'],
    ['capitals in a commit', { label: 'tiny', repo: { url, commit: 'A'.repeat(40) } }, 'spec.repo.commit'],
    ['a file: URL', { label: 'tiny', repo: { url: 'file:///etc', commit } }, 'spec.repo.url'],
    ['an ssh: URL', { label: 'tiny', repo: { url: 'ssh://git@forge/app', commit } }, 'spec.repo.url'],
    ['an ext:: URL', { label: 'tiny', repo: { url: 'ext::sh -c id', commit } }, 'spec.repo.url'],
    ['an option as URL', { label: 'tiny', repo: { url: '--upload-pack=id', commit } }, 'spec.repo.url'],
    ['a password in the URL', { label: 'tiny', repo: { url: 'https://a:b@forge/app', commit } }, 'spec.repo.url'],
    ['a line break in the URL', { label: 'tiny', repo: { url: 'https://forge/a\nb', commit } }, 'spec.repo.url'],
    ['a path upwards', { label: 'tiny', repo: { url, commit, path: '../x' } }, 'spec.repo.path'],
    ['a path upwards inside', { label: 'tiny', repo: { url, commit, path: 'a/../../x' } }, 'spec.repo.path'],
    ['an absolute path', { label: 'tiny', repo: { url, commit, path: '/etc/x' } }, 'spec.repo.path'],
    ['a zero byte in the path', { label: 'tiny', repo: { url, commit, path: 'a\0' } }, 'spec.repo.path'],
    ['an artifact outside', { label: 'tiny', script: 'x', artifacts: ['../*'] }, 'spec.artifacts[0]'],
    ['a variable with a space', { label: 'tiny', script: 'x', env: { 'A B': '1' } }, 'spec.env'],
    ['no time', { label: 'tiny', script: 'x', timeoutMs: 0 }, 'spec.timeoutMs'],
    ['too many retries', { label: 'tiny', script: 'x', retries: { max: 11 } }, 'spec.retries.max'],
    ['a retry for nothing known', { label: 'tiny', script: 'x', retries: { on: ['luck'] } }, 'spec.retries.on[0]'],
    ['an unknown field', { label: 'tiny', script: 'x', scripts: 'y' }, 'spec.scripts'],
  ])('is refused with %s', (_, spec, refusal) => expect(refusalOf(spec)).toContain(refusal));
});
