import { describe, expect, it } from 'vitest';
import { parseRepositoryNetworks } from './repository-networks.ts';

const refusal = (entries: readonly string[], address: string, host = 'git.example.com') =>
  parseRepositoryNetworks(entries).refusal(host, address);

describe('the networks of repositories', () => {
  it.each([
    ['a public address', [], '93.184.216.34'],
    ['a private one that is in a subnet', ['10.0.0.0/8'], '10.1.2.3'],
    ['a private one that is listed', ['10.1.2.3'], '10.1.2.3'],
    ['a private one of a host that is listed', ['GIT.example.com'], '10.1.2.3'],
    ['this host, where all private ones are open', ['private'], '127.0.0.1'],
    ['IPv6 in a subnet', ['fd00::/8'], 'fd00::1'],
  ])('contain %s', (_, entries, address) => expect(refusal(entries, address)).toBeUndefined());

  it.each([
    ['a private address', [], '10.1.2.3', 'repositoryNetworks'],
    ['this host', [], '127.0.0.1', 'repositoryNetworks'],
    ['this host, as IPv6', [], '::1', 'repositoryNetworks'],
    ['a private address as IPv6', [], '::ffff:10.1.2.3', 'repositoryNetworks'],
    ['an address beside a subnet', ['10.0.0.0/16'], '10.1.2.3', 'repositoryNetworks'],
    ['another host', ['git.example.org'], '10.1.2.3', 'repositoryNetworks'],
    ['metadata, where all private ones are open', ['private'], '169.254.169.254', 'link-local'],
    ['metadata, though listed', ['169.254.0.0/16', 'git.example.com'], '169.254.169.254', 'link-local'],
    ['link-local, as IPv6', ['private', 'fe80::/10'], 'fe80::1', 'link-local'],
    ['no address', ['private'], '0.0.0.0', 'reserved'],
  ])('do not contain %s', (_, entries, address, why) => expect(refusal(entries, address)).toContain(why));

  it.each(['10.0.0.0/33', '10.0.0/8', '10.0.0.0/8/8', 'http://a', '*.example.com', '', '10.0.0.0/x', '1234'])(
    '"%s" is no entry',
    (entry) =>
      expect(() => parseRepositoryNetworks(['private', entry])).toThrow(
        expect.objectContaining({ code: 'InvalidRequest', field: 'repositoryNetworks[1]' }),
      ),
  );
});
