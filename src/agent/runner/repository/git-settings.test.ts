import { describe, expect, it } from 'vitest';
import { archiveArguments, fetchArguments, gitEnvironment, initArguments } from './git-settings.ts';

const commit = 'a'.repeat(40);
const folders = { own: '/s/own', repository: '/s/own/repository', template: '/s/template' };
const source = {
  url: 'https://git.example.com/a',
  pin: undefined,
  credentialDescriptor: undefined,
  authorities: undefined,
};
const settingsOf = (words: readonly string[]) => words.filter((_, i) => words[i - 1] === '-c');

describe('the words for git', () => {
  it('end options before what a user wrote', () => {
    const words = fetchArguments(source, { commit, scope: 'commit' });
    expect(words.slice(-4)).toEqual(['--depth=1', '--', source.url, commit]);
    expect(fetchArguments(source, { commit, scope: 'history' })).not.toContain('--depth=1');
    expect(fetchArguments(source, { commit, scope: 'everything' }).slice(-2)).toEqual([
      source.url,
      '+refs/*:refs/all/*',
    ]);
    expect(words.join(' ')).not.toContain('--filter');
  });

  it.each([
    'core.hooksPath=/dev/null',
    'protocol.allow=never',
    'http.followRedirects=false',
    'transfer.fsckObjects=true',
    'transfer.bundleURI=false',
    'fetch.recurseSubmodules=false',
    'credential.helper=',
    'gc.auto=0',
  ])('set %s in every call', (setting) => {
    const calls = [
      fetchArguments(source, { commit, scope: 'commit' }),
      archiveArguments(commit),
      initArguments(folders, commit),
    ];
    for (const words of calls) expect(settingsOf(words)).toContain(setting);
  });

  it('pin the addresses, and ask for a credential for this server only, after all others are forgotten', () => {
    const words = fetchArguments(
      {
        ...source,
        url: 'http://git.example.com:3000/a',
        pin: 'git.example.com:3000:10.0.0.1,[fd00::1]',
        credentialDescriptor: 3,
      },
      { commit, scope: 'commit' },
    );
    const settings = settingsOf(words);
    expect(settings).toContain('http.curloptResolve=git.example.com:3000:10.0.0.1,[fd00::1]');
    const helper = settings.findIndex((each) => each.startsWith('credential.http://git.example.com:3000.helper=!'));
    expect(helper).toBeGreaterThan(settings.indexOf('credential.helper='));
  });

  it('choose the format of the repository by the hash', () => {
    expect(initArguments(folders, commit)).toContain('--object-format=sha1');
    expect(initArguments(folders, 'a'.repeat(64))).toContain('--object-format=sha256');
  });

  it('leave nothing of the environment but what is stated', () =>
    expect(gitEnvironment(folders)).toMatchObject({
      HOME: '/s/own',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_TERMINAL_PROMPT: '0',
      GIT_ALLOW_PROTOCOL: 'http:https',
    }));
});
