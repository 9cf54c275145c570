import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../base/system.ts';
import type { ImageCredentialConfig } from './image-credential-config.ts';
import { authorizationOf, guestCredentialFor, hostCredentials, withoutSecret } from './image-credentials.ts';

const rule = (more: Partial<ImageCredentialConfig>): ImageCredentialConfig => ({ prefix: 'r.example.com', ...more });

describe('the credentials of a host', () => {
  it.each<[string, Partial<ImageCredentialConfig>, string]>([
    ['no source', { username: 'a' }, 'imageCredentials[0].passwordFile'],
    ['two sources', { username: 'a', passwordFile: '/a', passwordCommand: 'b' }, 'imageCredentials[0].passwordFile'],
    ['no user name', { passwordFile: '/a' }, 'imageCredentials[0].username'],
    ['a token for a registry', { tokenFile: '/a' }, 'imageCredentials[0].tokenFile'],
    [
      'a user name of a token',
      { tokenFile: '/a', username: 'a', prefix: 'https://i.example.com' },
      'imageCredentials[0].username',
    ],
    ['no prefix', { prefix: 'team', username: 'a', passwordFile: '/a' }, 'imageCredentials[0].prefix'],
    ['plain HTTP', { prefix: 'http://i.example.com', tokenFile: '/a' }, 'imageCredentials[0].prefix'],
  ])('%s is refused', (_, more, field) => {
    expect(() => hostCredentials([rule(more)], systemClock)).toThrow(expect.objectContaining({ field }));
  });

  it.each<[string, Partial<ImageCredentialConfig>]>([
    ['plain HTTP that is allowed', { prefix: 'http://i.example.com', tokenFile: '/a', insecureHttp: true }],
    ['plain HTTP on this machine', { prefix: 'http://127.0.0.1:80', tokenFile: '/a' }],
  ])('%s is taken', (_, more) => {
    expect(() => hostCredentials([rule(more)], systemClock)).not.toThrow();
  });
});

describe('the credentials of a guest', () => {
  const own = (prefix: string) => ({ project: 'web', credentials: [{ prefix, username: 'u', secret: 's' }] });

  it('are chosen by prefix, and never for plain HTTP to another machine', () => {
    expect(guestCredentialFor(own('r.example.com/a'), 'oci://r.example.com/a/b')).toEqual({
      username: 'u',
      secret: 's',
    });
    expect(guestCredentialFor(own('r.example.com/a'), 'oci://r.example.com/b')).toBeUndefined();
    expect(guestCredentialFor(own('http://i.example.com'), 'http://i.example.com/b')).toBeUndefined();
    expect(guestCredentialFor(undefined, 'oci://r.example.com/b')).toBeUndefined();
  });
});

describe('a credential', () => {
  it('is a user name and a password, or a bearer token', () => {
    expect(authorizationOf({ username: 'u', secret: 'p' })).toBe('Basic dTpw');
    expect(authorizationOf({ secret: 't' })).toBe('Bearer t');
  });

  it('does not stay in a message', () => {
    expect(withoutSecret('bad password hunter22 (dTpodW50ZXIyMg==)', { username: 'u', secret: 'hunter22' })).toBe(
      'bad password *** (***)',
    );
  });
});
