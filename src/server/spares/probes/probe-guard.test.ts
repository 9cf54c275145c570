import type { lookup as dnsLookup } from 'node:dns';
import { describe, expect, it } from 'vitest';
import { ProbeGuard } from './probe-guard.ts';

const guard = new ProbeGuard(['10.1.0.0/16:6443', '127.0.0.1/32']);

describe('a probe of port 80 of a host with the address 10.9.9.9', () => {
  it.each([
    ['the open network', '93.184.215.14', true],
    ['its own host', '10.9.9.9', true],
    ['its own host, as mapped IPv6', '::ffff:10.9.9.9', true],
    ['another host', '10.9.9.8', false],
    ['an allowed subnet, on another port', '10.1.2.3', false],
    ['an allowed address', '127.0.0.1', true],
    ['another loopback address', '127.0.0.2', false],
    ['loopback as mapped IPv6', '::ffff:7f00:2', false],
    ['the metadata service', '169.254.169.254', false],
    ['no address', '', false],
    ['a zone', 'fe80::1%eth0', false],
  ])('%s (%s): %s', (_, address, allowed) => {
    const place = { hostname: address, port: 80, ownAddress: '10.9.9.9' };
    expect(guard.whyNot(address, place) === undefined).toBe(allowed);
  });
});

it.each([
  ['10.7.7.7', true],
  ['127.0.0.2', false],
  ['::ffff:7f00:2', false],
  ['169.254.169.254', false],
])('lets the name of the spare lead to %s: %s', (address, allowed) => {
  const place = { hostname: 'node-9.lab', port: 80, ownAddress: 'node-9.lab' };
  expect(guard.whyNot(address, place) === undefined).toBe(allowed);
});

it('allows a subnet on its port', () => {
  expect(guard.whyNot('10.1.2.3', { hostname: 'x', port: 6443, ownAddress: undefined })).toBeUndefined();
});

it.each(['127.0.0.3', '::1', '169.254.169.254'])('takes %s for no address of a host', (address) => {
  expect(guard.whyNot(address, { hostname: address, port: 80, ownAddress: address })).toContain('probeAllow');
});

it('refuses a name with a private address beside a public one', async () => {
  // The overload that is used; the type has several.
  const lookup = ((_name: string, _options: object, done: (...found: unknown[]) => void) =>
    done(null, [
      { address: '93.184.215.14', family: 4 },
      { address: '10.0.0.1', family: 4 },
    ])) as unknown as typeof dnsLookup;
  const place = { hostname: 'both.test', port: 80, ownAddress: undefined };
  const error = await new Promise((resolve) => new ProbeGuard([], lookup).lookupFor(place)('both.test', {}, resolve));
  expect(error).toMatchObject({ message: expect.stringContaining('10.0.0.1') });
});

it.each(['10.0.0.0', '10.0.0.0/33', 'host/8', '10.0.0.0/8:99999'])('names the field of %s', (subnet) => {
  expect(() => new ProbeGuard(['10.0.0.0/8', subnet])).toThrow(
    expect.objectContaining({ code: 'InvalidRequest', field: 'probeAllow[1]' }),
  );
});
