import { describe, expect, it } from 'vitest';
import { chooseCredential, parseCredentialRules } from './credentials.ts';
import { parseRepositoryUrl } from './repository-url.ts';

const rulesOf = (...prefixes: string[]) =>
  parseCredentialRules(prefixes.map((prefix) => ({ prefix, username: 'git', passwordFile: '/x' })));
const chosen = (url: string, ...prefixes: string[]) =>
  chooseCredential(rulesOf(...prefixes), parseRepositoryUrl(url))?.prefix;

describe('a credential', () => {
  it.each([
    ['the same URL', 'https://a/team/tool.git', 'https://a/team/tool.git'],
    ['a path below', 'https://a/team/tool.git', 'https://a/team'],
    ['a path below, with a slash', 'https://a/team/tool.git', 'https://a/team/'],
    ['a whole server', 'https://a/team/tool.git', 'https://a'],
    ['the usual port', 'https://a:443/team', 'https://a/team'],
    ['the host in capital letters', 'https://a/team', 'https://A/team'],
  ])('fits %s', (_, url, prefix) => expect(chosen(url, prefix)).toBe(prefix));

  it.each([
    ['a name that only begins so', 'https://a/team-b/tool', 'https://a/team'],
    ['the same name with an ending', 'https://a/tool.git', 'https://a/tool'],
    ['another scheme', 'http://a/team', 'https://a/team'],
    ['another host', 'https://a.b/team', 'https://a/team'],
    ['another port', 'https://a:8443/team', 'https://a/team'],
    ['other capital letters in the path', 'https://a/Team', 'https://a/team'],
    ['a path above', 'https://a/', 'https://a/team'],
    ['a path that leads out', 'https://a/team/../other', 'https://a/team'],
  ])('does not fit %s', (_, url, prefix) => expect(chosen(url, prefix)).toBeUndefined());

  it('is the one of the longest prefix', () =>
    expect(chosen('https://a/x/y/z', 'https://a/x', 'https://a/x/y', 'https://a')).toBe('https://a/x/y'));

  it('names the prefix that is no URL', () =>
    expect(() => rulesOf('https://a', 'https://user:pass@b')).toThrow(
      expect.objectContaining({ code: 'InvalidRequest', field: 'repositoryCredentials[1].prefix' }),
    ));
});
