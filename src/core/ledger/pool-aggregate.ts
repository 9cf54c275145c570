// Pool aggregate: a pool as the Placement API has it. The providers of its hosts are members of this aggregate.

import { sha256 } from '../../base/sha256.ts';

/** The UUID of a pool's aggregate: always the same for the same name. */
export function poolAggregate(pool: string): string {
  const hex = sha256(`berth pool ${pool}`);
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 3) | 8).toString(16);
  // Version 8 of RFC 9562: the other bits are the maker's.
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
