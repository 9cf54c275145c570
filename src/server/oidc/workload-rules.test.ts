import { describe, expect, it } from 'vitest';
import { whyNotAdmitted } from './workload-rules.ts';

const base = { iss: 'https://ci.example', sub: 'job', exp: 1 };

/** As GitHub signs it for a push. */
const push = {
  ...base,
  repository: 'acme/web',
  repository_id: '42',
  repository_owner_id: '7',
  ref: 'refs/heads/main',
  event_name: 'push',
  environment: 'production',
};
const pull = { ...push, event_name: 'pull_request', ref: 'refs/pull/3/merge' };

/** As GitLab signs it for a branch. */
const branch = {
  ...base,
  project_id: '42',
  project_path: 'acme/web',
  ref: 'main',
  ref_path: 'refs/heads/main',
  ref_protected: 'true',
  pipeline_source: 'push',
};
const merge = { ...branch, pipeline_source: 'merge_request_event', ref_path: 'refs/merge-requests/5/head' };

type Row = readonly [
  name: string,
  rule: Readonly<Record<string, string | string[]>>,
  claims: typeof base & Record<string, unknown>,
];

describe('a rule admits', () => {
  const rows: readonly Row[] = [
    ['a push to the repository', { repository_id: '42' }, push],
    ['every repository of an owner', { repository_owner_id: '7' }, push],
    ['the branch that it names', { repository_id: '42', ref: 'refs/heads/main' }, push],
    ['one of several branches', { repository_id: '42', ref: ['refs/heads/dev', 'refs/heads/main'] }, push],
    ['a branch by wildcard', { repository_id: '42', ref: 'refs/heads/*' }, push],
    ['a text by wildcards', { repository_id: '42', repository: '*me/w*b' }, push],
    ['an id that is a number', { repository_id: '42' }, { ...push, repository_id: 42 }],
    ['a flag of GitLab', { project_id: '42', ref_protected: 'true' }, branch],
    ['a flag that is a boolean', { project_id: '42', ref_protected: 'true' }, { ...branch, ref_protected: true }],
    ['a pull request that it names', { repository_id: '42', event_name: 'pull_request' }, pull],
    ['pushes and pull requests', { repository_id: '42', event_name: ['push', 'pull_request'] }, pull],
    ['a merge request that it names', { project_id: '42', pipeline_source: 'merge_request_event' }, merge],
  ];
  it.each(rows)('%s', (_, claims, token) => expect(whyNotAdmitted({ claims }, token)).toBeUndefined());
});

describe('a rule does not admit', () => {
  const stranger = 'jobs of pull requests need a rule';
  const rows: readonly (readonly [...Row, string])[] = [
    ['another repository', { repository_id: '43' }, push, 'its claim repository_id is "42"'],
    ['a repository made again under an old name', { repository: 'acme/web', repository_id: '41' }, push, 'is "42"'],
    ['an id that only begins so', { repository_id: '4' }, push, 'is "42"'],
    ['another branch', { repository_id: '42', ref: 'refs/heads/dev' }, push, 'its claim ref'],
    ['a branch with a slash by wildcard', { ref: 'refs/*' }, push, 'its claim ref'],
    ['a text with a colon by wildcard', { environment: 'a*' }, { ...push, environment: 'a:b' }, 'environment'],
    ['a token without the claim', { project_id: '42' }, push, 'the token has no claim project_id'],
    ['a claim of every object', { constructor: '*' }, push, 'the token has no claim constructor'],
    ['a claim that is a list', { ref: '*' }, { ...push, ref: ['main'] }, 'the token has no claim ref'],
    ['a pull request', { repository_id: '42' }, pull, stranger],
    ['a pull request by wildcard', { repository_id: '42', event_name: 'pull_*' }, pull, stranger],
    ['pull_request_target', { repository_id: '42' }, { ...push, event_name: 'pull_request_target' }, stranger],
    [
      'pull_request_target for pull_request',
      { repository_id: '42', event_name: 'pull_request' },
      { ...push, event_name: 'pull_request_target' },
      'its claim event_name',
    ],
    [
      'the ref of a pull request',
      { repository_id: '42', event_name: 'push' },
      { ...pull, event_name: 'push' },
      stranger,
    ],
    ['a merge request', { project_id: '42' }, merge, stranger],
    [
      'a child pipeline of a merge request',
      { project_id: '42', pipeline_source: ['push', 'parent_pipeline'] },
      { ...merge, pipeline_source: 'parent_pipeline' },
      stranger,
    ],
    [
      'a fork, although its merge request is named',
      { project_id: '42', pipeline_source: 'merge_request_event' },
      { ...merge, project_id: '99' },
      'its claim project_id is "99"',
    ],
    [
      'a token that does not say what started it',
      { project_id: '42' },
      { ...base, project_id: '42' },
      'does not say what started',
    ],
  ];
  it.each(rows)('%s', (_, claims, token, reason) => expect(whyNotAdmitted({ claims }, token)).toContain(reason));
});

it('compares long texts with many wildcards in an instant', () => {
  const token = { ...push, ref: 'a'.repeat(10_000) };
  expect(whyNotAdmitted({ claims: { ref: `${'a*'.repeat(100)}b` } }, token)).toContain('its claim ref');
});
