// Which receivers are asked, which are not, and that the answer of a resolver cannot change that.

import type { LookupAddress } from 'node:dns';
import { describe, expect, it } from 'vitest';
import { ReceiverGuard } from './receiver-guard.ts';

describe('a URL with an address', () => {
  it.each([
    'http://127.0.0.1/',
    'https://127.0.0.1/',
    'https://127.1/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://0177.0.0.1/',
    'https://[::1]/',
    'https://[::ffff:7f00:1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::127.0.0.1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://[2002:7f00:1::]/',
    'https://[fd00:ec2::254]/',
    'https://[fe80::1]/',
    'https://0.0.0.0/',
    'https://10.0.0.1/',
    'https://100.64.0.1/',
    'https://172.16.0.1/',
    'https://192.168.1.1/',
    'https://169.254.169.254/latest/meta-data/',
    'https://198.18.0.1/',
    'https://224.0.0.1/',
    'https://255.255.255.255/',
    'http://8.8.8.8/',
  ])('%s is refused', (url) => {
    expect(() => new ReceiverGuard([]).checkedUrl(url)).toThrow(/webhookAllow|https/);
  });

  it.each(['https://8.8.8.8/', 'https://[2606:4700::1111]/', 'https://receiver.example/'])('%s is taken', (url) => {
    expect(() => new ReceiverGuard([]).checkedUrl(url)).not.toThrow();
  });

  it('with a user name is refused', () => {
    expect(() => new ReceiverGuard([]).checkedUrl('https://user:pw@receiver.example/')).toThrow(/user name/);
  });
});

describe('what the operator allows', () => {
  it.each([
    ['10.1.0.0/16', 'http://10.1.2.3:8080/', true],
    ['10.1.0.0/16:8080', 'http://10.1.2.3:8080/', true],
    ['10.1.0.0/16:8080', 'http://10.1.2.3:8081/', false],
    ['10.1.0.0/16', 'http://10.2.2.3/', false],
    ['[fd00::]/8:443', 'https://[fd00::1]/', true],
    ['127.0.0.0/8:9000', 'http://127.0.0.1:9000/', true],
    ['127.0.0.0/8:9000', 'http://[::ffff:127.0.0.1]:9000/', true],
    ['127.0.0.0/8:9000', 'http://[::ffff:10.0.0.1]:9000/', false],
  ])('%s lets %s in: %s', (allow, url, allowed) => {
    const check = () => new ReceiverGuard([allow]).checkedUrl(url);
    if (allowed) expect(check).not.toThrow();
    else expect(check).toThrow(/./);
  });

  it.each(['10.0.0.0', '10.0.0.0/33', 'example.com/8', '10.0.0.0/8:99999', ''])('%s is no subnet', (text) => {
    expect(() => new ReceiverGuard([text])).toThrow(expect.objectContaining({ field: 'webhookAllow[0]' }));
  });
});

describe('a name', () => {
  const lookedUp = (addresses: readonly string[]): Promise<string> =>
    new Promise((resolve) => {
      const lookup = ((_name: string, _asked: unknown, done: (error: Error | null, found: LookupAddress[]) => void) =>
        done(
          null,
          addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
        )) as never; // only this overload is used
      const guard = new ReceiverGuard([], { lookup });
      guard.lookupFor(new URL('https://receiver.example/'))('receiver.example', {}, (error, address) =>
        resolve(error === null ? JSON.stringify(address) : `refused: ${error.message}`),
      );
    });

  it.each([
    [['8.8.8.8'], '8.8.8.8'],
    [['8.8.8.8', '10.0.0.1'], 'refused'],
    [['8.8.8.8', '::1'], 'refused'],
    [['::ffff:169.254.169.254'], 'refused'],
    [[], 'refused'],
  ])('that leads to %j: %s', async (addresses, expected) => {
    expect(await lookedUp(addresses)).toContain(expected);
  });
});
