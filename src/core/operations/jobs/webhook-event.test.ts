import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../api/errors.ts';
import { readEvent } from './webhook-event.ts';

const sha = (digit: string): string => digit.repeat(40);
const repository = { id: 7, full_name: 'owner/web', clone_url: 'https://forge.test/owner/web.git' };
const push = { ref: 'refs/heads/main', before: sha('1'), after: sha('2'), commits: [], repository };
const pull = {
  action: 'opened',
  number: 3,
  pull_request: { head: { sha: sha('a'), repo: { id: 7 } }, base: { ref: 'main' } },
  repository,
};

describe('a push is refused, with the field named,', () => {
  it.each<[string, unknown, string]>([
    ['as an array', [], 'body'],
    ['as null', null, 'body'],
    ['without a ref', { ...push, ref: undefined }, 'ref'],
    ['with a ref that is a number', { ...push, ref: 7 }, 'ref'],
    ['with a control character in the ref', { ...push, ref: 'refs/heads/a\nb' }, 'ref'],
    ['without after', { ...push, after: undefined }, 'after'],
    ['with a short commit', { ...push, after: sha('2').slice(1) }, 'after'],
    ['with a commit in upper case', { ...push, after: sha('A') }, 'after'],
    ['with a branch for before', { ...push, before: 'main' }, 'before'],
    ['without a repository', { ...push, repository: null }, 'repository.id'],
    ['with an id that is a text', { ...push, repository: { ...repository, id: '7' } }, 'repository.id'],
    ['with one word for a name', { ...push, repository: { ...repository, full_name: 'web' } }, 'repository.full_name'],
    ['with dots for a name', { ...push, repository: { ...repository, full_name: 'a/..' } }, 'repository.full_name'],
    ['with three words', { ...push, repository: { ...repository, full_name: 'a/b/c' } }, 'repository.full_name'],
    [
      'with a query in the name',
      { ...push, repository: { ...repository, full_name: 'a/b?c' } },
      'repository.full_name',
    ],
    ['with an ssh URL', { ...push, repository: { ...repository, clone_url: 'git@a:b' } }, 'repository.clone_url'],
    [
      'with a password in the URL',
      { ...push, repository: { ...repository, clone_url: 'https://u:p@forge.test/owner/web.git' } },
      'repository.clone_url',
    ],
  ])('%s', (_, body, field) =>
    expect(() => readEvent('github', 'push', body)).toThrow(expect.objectContaining({ code: 'InvalidRequest', field })),
  );
});

describe('a pull request is refused, with the field named,', () => {
  it.each<[string, unknown, string]>([
    ['without an action', { ...pull, action: undefined }, 'action'],
    ['without a number', { ...pull, number: undefined }, 'number'],
    ['with a fraction for a number', { ...pull, number: 1.5 }, 'number'],
    ['without a head', { ...pull, pull_request: { base: { ref: 'main' } } }, 'pull_request.head.sha'],
    ['without a base', { ...pull, pull_request: { head: pull.pull_request.head } }, 'pull_request.base.ref'],
    ['labeled without a label', { ...pull, action: 'labeled' }, 'label.name'],
  ])('%s', (_, body, field) =>
    expect(() => readEvent('github', 'pull_request', body)).toThrow(
      expect.objectContaining({ code: 'InvalidRequest', field }),
    ),
  );
});

describe('an event asks for nothing', () => {
  it.each<[string, 'push' | 'pull_request', object]>([
    ['when the branch was deleted', 'push', { ...push, after: sha('0'), head_commit: null }],
    ['when it says that the branch was deleted', 'push', { ...push, deleted: true }],
    ['for a tag', 'push', { ...push, ref: 'refs/tags/v1' }],
    ['when a pull request is closed', 'pull_request', { ...pull, action: 'closed' }],
  ])('%s', (_, name, body) => expect(readEvent('github', name, body)).toEqual({ ignored: expect.any(String) }));
});

describe('an event says', () => {
  it.each<[string, 'push' | 'pull_request', object, object]>([
    ['what came before', 'push', push, { before: sha('1'), sha: sha('2'), branch: 'main', chained: true }],
    ['that nothing came before', 'push', { ...push, before: sha('0') }, { before: undefined, chained: true }],
    ['which pull request it is of', 'pull_request', pull, { ref: 'refs/pull/3/head', branch: 'main', chained: true }],
    [
      'what came before in a pull request',
      'pull_request',
      { ...pull, action: 'synchronize', before: sha('9') },
      { before: sha('9'), chained: true },
    ],
    [
      'nothing of what came before',
      'pull_request',
      { ...pull, action: 'synchronized' },
      { before: undefined, chained: false },
    ],
    ['that it is not of a fork', 'pull_request', pull, { fork: false }],
    [
      'that it is of a fork',
      'pull_request',
      { ...pull, pull_request: { ...pull.pull_request, head: { sha: sha('a'), repo: { id: 8 } } } },
      { fork: true },
    ],
    [
      'that it is of a fork which is gone',
      'pull_request',
      { ...pull, pull_request: { ...pull.pull_request, head: { sha: sha('a'), repo: null } } },
      { fork: true },
    ],
  ])('%s', (_, name, body, expected) => expect(readEvent('forgejo', name, body)).toMatchObject(expected));
});

it('any JSON is an event, is ignored, or is refused with a field', () => {
  const fields = ['ref', 'before', 'after', 'commits', 'repository', 'action', 'number', 'pull_request'];
  const changed = fc
    .record({ form: fc.constantFrom(push, pull), field: fc.constantFrom(...fields), value: fc.jsonValue() })
    .map(({ form, field, value }): unknown => ({ ...form, [field]: value }));
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), changed), fc.constantFrom('push', 'pull_request'), (body, name) => {
      try {
        expect(typeof readEvent('github', name, body)).toBe('object');
      } catch (error) {
        expect(error instanceof ApiError && error.field).toEqual(expect.any(String));
      }
    }),
  );
});
