// Which addresses repositories may be fetched from: public ones, and those private ones that the operator lists (`repositoryNetworks`). Never
// a link-local or metadata address: these give away a host's credentials. Pure.

import { BlockList, isIP, isIPv6 } from 'node:net';
import { ApiError } from '../../../api/errors.ts';
import { addressKind } from '../../../base/net/address-kind.ts';

export interface RepositoryNetworks {
  /** Why the agent does not connect to this address for this host name; undefined: it does. */
  refusal(host: string, address: string): string | undefined;
}

/** `private`, a subnet, an address, or a host name, each. Throws `InvalidRequest` for anything else. */
export function parseRepositoryNetworks(entries: readonly string[]): RepositoryNetworks {
  const blocks = new BlockList();
  const hosts = new Set<string>();
  const everyPrivate = entries.includes('private');
  for (const [i, entry] of entries.entries()) {
    const [network = '', bits, rest] = entry.split('/');
    const family = isIPv6(network) ? 'ipv6' : 'ipv4';
    const most = family === 'ipv6' ? 128 : 32;
    if (isIP(network) !== 0 && bits === undefined) blocks.addAddress(network, family);
    else if (isIP(network) !== 0 && rest === undefined && /^\d{1,3}$/.test(bits ?? '') && Number(bits) <= most)
      blocks.addSubnet(network, Number(bits), family);
    else if (/^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/i.test(entry) && !/^[\d.]+$/.test(entry))
      hosts.add(entry.toLowerCase());
    else throw notAnEntry(entry, i);
  }
  return {
    refusal(host, address) {
      const kind = addressKind(address);
      if (kind === 'public') return undefined;
      const where = host === address ? address : `${host} (${address})`;
      if (kind === 'forbidden') return `${where} is a link-local, metadata or reserved address`;
      if (everyPrivate || hosts.has(host) || blocks.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')) return undefined;
      return `${where} is a private address; list it in repositoryNetworks of the agent to allow it`;
    },
  };
}

function notAnEntry(entry: string, i: number): ApiError {
  const message = `repositoryNetworks: "${entry}" is no subnet, address or host name; examples: 10.0.0.0/8, git.example.com, private`;
  return new ApiError('InvalidRequest', message, { field: `repositoryNetworks[${i}]` });
}
