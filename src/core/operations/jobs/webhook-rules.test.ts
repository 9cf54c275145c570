import { describe, expect, it } from 'vitest';
import { type ForgeEvent, readEvent } from './webhook-event.ts';
import { globMatches, type HookRule, matchingRules } from './webhook-rules.ts';

describe('a pattern', () => {
  it.each([
    ['main', 'main', true],
    ['main', 'mainline', false],
    ['*', 'main', true],
    ['*', 'release/1', false],
    ['release/*', 'release/1', true],
    ['release/*', 'release/1/2', false],
    ['**', 'release/1/2', true],
    ['src/**', 'src/a/b.ts', true],
    ['src/**', 'source/a.ts', false],
    ['src/**', 'src', true],
    ['**/*.md', 'README.md', true],
    ['**/*.md', 'docs/a/b.md', true],
    ['docs/**/b.md', 'docs/b.md', true],
    ['a?c', 'abc', true],
    ['a?c', 'a/c', false],
    ['*a*b', 'xaxxb', true],
    ['*a*b', 'xaxxbx', false],
    ['owner/*', 'owner/web', true],
    ['owner/*', 'other/web', false],
  ])('%s and %s: %s', (pattern, text, matched) => expect(globMatches(pattern, text)).toBe(matched));

  it('of many stars is compared in little time', () =>
    expect(globMatches('*a*a*a*a*a*a*a*a*a*a*b', 'a'.repeat(1000))).toBe(false));
});

const sha = (digit: string): string => digit.repeat(40);

function push(changes: Readonly<Record<string, unknown>> = {}): ForgeEvent {
  const read = readEvent('github', 'push', {
    ref: 'refs/heads/main',
    before: sha('1'),
    after: sha('2'),
    commits: [{ added: ['src/a.ts'], modified: [], removed: [] }],
    repository: { id: 7, full_name: 'owner/web', clone_url: 'https://forge.test/owner/web.git' },
    ...changes,
  });
  if ('ignored' in read) throw new Error(read.ignored);
  return read;
}

const rule: HookRule = { repository: 'owner/*', branches: ['main', 'release/*'], events: ['push'] };

describe('a rule matches a push', () => {
  it.each<[string, Partial<HookRule>, Readonly<Record<string, unknown>>, boolean]>([
    ['to a branch that it lists', {}, {}, true],
    ['to a branch by pattern', {}, { ref: 'refs/heads/release/1' }, true],
    ['to another branch', {}, { ref: 'refs/heads/topic' }, false],
    ['of a repository in other letter case', { repository: 'Owner/WEB' }, {}, true],
    ['of another repository', { repository: 'owner/api' }, {}, false],
    ['for pull requests only', { events: ['pull_request'] }, {}, false],
    ['that changes a path', { paths: ['src/**'] }, {}, true],
    ['that changes other paths', { paths: ['docs/**'] }, {}, false],
    ['whose commits are not listed', { paths: ['docs/**'] }, { commits: [] }, true],
    ['whose list is as long as it may be', { paths: ['docs/**'] }, { commits: Array(20).fill(commit()) }, true],
    ['whose list is not as long', { paths: ['docs/**'] }, { commits: Array(21).fill(commit()) }, false],
    ['with more commits than are listed', { paths: ['docs/**'] }, { commits: [commit()], total_commits: 2 }, true],
    ['with all commits listed', { paths: ['docs/**'] }, { commits: [commit()], total_commits: 1 }, false],
    ['with a commit whose files are missing', { paths: ['docs/**'] }, { commits: [{ added: null }] }, true],
    ['that creates the branch', { paths: ['docs/**'] }, { before: sha('0') }, true],
    ['that is forced', { paths: ['docs/**'] }, { forced: true }, true],
  ])('%s', (_, changes, body, matched) =>
    expect(matchingRules([{ ...rule, ...changes }], push(body))).toHaveLength(matched ? 1 : 0),
  );

  it('once for each label and workflow path', () => {
    const rules = [
      { ...rule, label: 'debian-12', size: 'large' },
      { ...rule, label: 'debian-12', size: 'small' },
      { ...rule, label: 'debian-12', workflowPath: 'ci/docs.sh' },
      { ...rule, label: 'alpine' },
      rule,
    ];
    expect(matchingRules(rules, push()).map(({ context, rule: { size } }) => [context, size])).toEqual([
      ['berth/push/debian-12', 'large'],
      ['berth/push/debian-12/ci/docs.sh', undefined],
      ['berth/push/alpine', undefined],
      ['berth/push/default', undefined],
    ]);
  });
});

function commit(): Readonly<Record<string, unknown>> {
  return { added: ['src/a.ts'], modified: [], removed: [] };
}
