// A look-up for a connection that goes only to addresses that were judged: the one that is dialled is the one that was looked at, so that a
// name that leads elsewhere a moment later leads nowhere.

import { lookup as dnsLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';

/** `judge`: why an address is refused; when any of a name is, the connection fails with that. */
export function checkedLookup(judge: (address: string) => Error | undefined, lookup = dnsLookup): LookupFunction {
  return (hostname, asked, done) => {
    lookup(hostname, { ...asked, all: true }, (error, addresses) => {
      if (error !== null) return done(error, '', 4);
      const fault = addresses.map(({ address }) => judge(address)).find((each) => each !== undefined);
      const [one] = addresses;
      if (fault !== undefined || one === undefined)
        return done(fault ?? new Error(`${hostname} has no address`), '', 4);
      if (asked.all === true) done(null, addresses);
      else done(null, one.address, one.family);
    });
  };
}
