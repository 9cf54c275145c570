import { describe, expect, it } from 'vitest';
import { describeUrl, parseRepositoryUrl } from './repository-url.ts';

describe('the URL of a repository', () => {
  it.each([
    ['as it is', 'https://git.example.com/team/tool.git', 'https://git.example.com/team/tool.git', 443],
    ['in capital letters', 'HTTP://GIT.Example.COM/Tool', 'http://git.example.com/Tool', 80],
    ['with the usual port', 'https://git.example.com:443/a', 'https://git.example.com/a', 443],
    ['with a port', 'http://git.example.com:3000/a', 'http://git.example.com:3000/a', 3000],
    ['with dots in its path', 'http://a/team/../b', 'http://a/b', 80],
    ['with a dot after the host', 'http://a.example./b', 'http://a.example/b', 80],
    ['with an address', 'http://[::1]:8080/b', 'http://[::1]:8080/b', 8080],
    ['with an address as a number', 'http://2130706433/b', 'http://127.0.0.1/b', 80],
    ['with other letters', 'http://bücher.example/b', 'http://xn--bcher-kva.example/b', 80],
  ])('%s', (_, text, href, port) => expect(parseRepositoryUrl(text)).toMatchObject({ href, port }));

  it.each([
    ['of a file', 'file:///etc/passwd'],
    ['of SSH', 'ssh://git@git.example.com/a'],
    ['of another program', 'ext::sh -c x'],
    ['with a leading dash', '--upload-pack=x'],
    ['with a password', 'https://user:pass@git.example.com/a'],
    ['with a query', 'https://git.example.com/a?x=1'],
    ['with an empty query', 'https://git.example.com/a?'],
    ['with a fragment', 'https://git.example.com/a#b'],
    ['with an encoded slash', 'https://git.example.com/team/..%2fother'],
    ['with an encoded line', 'https://git.example.com/a%0ahost=b'],
    ['with a host that is no name', 'https://-x.example/a'],
    ['without a host', 'http:///'],
  ])('%s is refused', (_, text) =>
    expect(() => parseRepositoryUrl(text)).toThrow(expect.objectContaining({ code: 'RepositoryRefused' })),
  );

  it('is shown without what may be a secret', () =>
    expect(describeUrl('https://user:pass@git.example.com/a?token=b')).toBe('https://git.example.com/a'));
});
