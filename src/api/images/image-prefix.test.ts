import { describe, expect, it } from 'vitest';
import { longestPrefix, placeOfSource, readImagePrefix } from './image-prefix.ts';

function chosen(prefixes: readonly string[], source: string): string | undefined {
  const rules = prefixes.map((prefix) => {
    const read = readImagePrefix(prefix);
    if (!read.ok) throw new Error(read.fault);
    return { prefix, place: read.place };
  });
  const place = placeOfSource(source);
  return place && longestPrefix(rules, place)?.prefix;
}

describe('the prefix of images', () => {
  it.each([
    ['a registry', 'registry.example.com/team', 'docker://registry.example.com/team/app:1', true],
    ['a registry of disks', 'registry.example.com/team', 'oci://registry.example.com/team/disk:1', true],
    ['a slash at its end', 'registry.example.com/team/', 'docker://registry.example.com/team/app:1', true],
    ['the host alone', 'registry.example.com', 'docker://registry.example.com/a/b/c:1', true],
    ['the repository itself', 'registry.example.com/team/app', 'docker://registry.example.com/team/app:1', true],
    ['a digest', 'registry.example.com/team/app', `oci://registry.example.com/team/app@sha256:${'a'.repeat(64)}`, true],
    ['another letter case of the host', 'Registry.Example.com/team', 'oci://registry.EXAMPLE.com/team/disk', true],
    ['part of a segment', 'registry.example.com/team', 'docker://registry.example.com/teammate/app:1', false],
    ['a longer host', 'registry.example.com', 'docker://registry.example.com.evil.net/team/app:1', false],
    ['a host below', 'example.com', 'docker://registry.example.com/app:1', false],
    ['another port', 'registry.example.com:5000/team', 'docker://registry.example.com:5001/team/app:1', false],
    ['a missing port', 'registry.example.com:5000/team', 'docker://registry.example.com/team/app:1', false],
    ['a port', 'registry.example.com:5000/team', 'docker://registry.example.com:5000/team/app:1', true],
    ['a tag like a port', 'localhost:5000', 'oci://localhost:5000/app:5000', true],
    ['a registry for a URL', 'images.example.com/private', 'https://images.example.com/private/a.img', false],
    ['a URL', 'https://images.example.com/private', 'https://images.example.com/private/a.img?x=1', true],
    ['a URL with its default port', 'https://images.example.com:443/p', 'https://images.example.com/p/a', true],
    ['part of a segment of a URL', 'https://images.example.com/pri', 'https://images.example.com/private/a.img', false],
    ['plain HTTP', 'https://images.example.com/private', 'http://images.example.com/private/a.img', false],
    ['another host of a URL', 'https://images.example.com/', 'https://images.example.com.evil.net/a', false],
    ['a way up', 'https://images.example.com/private', 'https://images.example.com/private/../open/a', false],
    ['an encoded way up', 'https://images.example.com/private', 'https://images.example.com/private/%2e%2e/a', false],
    ['an encoded slash', 'https://images.example.com/private', 'https://images.example.com/private%2fa', false],
    ['two slashes', 'https://images.example.com/private', 'https://images.example.com//private/a', false],
    ['a user name in the source', 'https://images.example.com', 'https://a:b@images.example.com/a', false],
    ['a file', 'https://images.example.com', 'file:///images.example.com', false],
  ])('%s', (_, prefix, source, fits) => {
    expect(chosen([prefix], source)).toBe(fits ? prefix : undefined);
  });

  it('is the longest that fits', () => {
    const prefixes = ['r.example.com/a', 'r.example.com', 'r.example.com/a/b', 'r.example.com/a/c/d'];
    expect(chosen(prefixes, 'oci://r.example.com/a/b/x')).toBe('r.example.com/a/b');
    expect(chosen(prefixes, 'oci://r.example.com/a/c/x')).toBe('r.example.com/a');
    expect(chosen(prefixes, 'oci://r.example.com/z')).toBe('r.example.com');
  });

  it.each([
    'team',
    '',
    'oci://r.example.com',
    'https://a:b@r.example.com',
    'https://r.example.com/?a',
    'https://r/a%2fb',
    'r.example.com/a b',
  ])('"%s" is none', (prefix) => {
    expect(readImagePrefix(prefix).ok).toBe(false);
  });

  it.each([
    ['http://images.example.com/a', true],
    ['http://127.0.0.1:8080/a', false],
    ['https://images.example.com/a', false],
  ])('%s in clear: %s', (prefix, inClear) => {
    expect(readImagePrefix(prefix)).toMatchObject({ ok: true, place: { inClear } });
  });
});
