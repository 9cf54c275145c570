// Pool aggregate: a pool as the Placement API has it. The providers of its hosts are members of this aggregate.

import { sha256 } from '../../base/sha256.ts';

/** Of the pools seen last: rules ask for them host by host. */
const known = new Map<string, string>();
const knownMax = 1_000;

/** The UUID of a pool's aggregate: always the same for the same name. */
export function poolAggregate(pool: string): string {
  let uuid = known.get(pool);
  if (uuid === undefined) {
    if (known.size >= knownMax) known.clear();
    known.set(pool, (uuid = uuidOf(pool)));
  }
  return uuid;
}

function uuidOf(pool: string): string {
  const hex = sha256(`berth pool ${pool}`);
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 3) | 8).toString(16);
  // Version 8 of RFC 9562: the other bits are the maker's.
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** The aggregates of a provider whose host is in this pool. */
export function aggregatesIn(pool: string | undefined, own: readonly string[]): readonly string[] {
  return pool === undefined ? own : [...own, poolAggregate(pool)];
}
