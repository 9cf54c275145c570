import { describe, expect, it } from 'vitest';
import { withoutSecrets } from './hidden-secrets.ts';

describe('a configuration that is shown', () => {
  it.each([
    ['a password in a URL', 'postgres://ann:pw@db/berth', 'postgres://ann:(hidden)@db/berth'],
    ['a password with an @', 'amqp://ann:p@w@mq:5672/', 'amqp://ann:(hidden)@mq:5672/'],
    ['a password in the query', 'postgres://db/x?user=a&password=pw', 'postgres://db/x?user=a&password=(hidden)'],
    ['a URL without a password', 'https://berth.example.org:7070', 'https://berth.example.org:7070'],
    ['a path', '/etc/berth/host.token', '/etc/berth/host.token'],
  ])('%s', (_, text, shown) => {
    expect(withoutSecrets(text)).toBe(shown);
  });

  it('has no secret at any depth, and keeps the names of files', () => {
    const value = {
      token: 't',
      tokenFile: '/f',
      list: [{ password: 'p', url: 'http://a:b@c/' }],
      headers: { 'X-Key': 'k' },
    };
    expect(withoutSecrets(value)).toEqual({
      token: '(hidden)',
      tokenFile: '/f',
      list: [{ password: '(hidden)', url: 'http://a:(hidden)@c/' }],
      headers: { 'X-Key': '(hidden)' },
    });
  });
});
