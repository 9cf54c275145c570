// How private keys of the authority lie in the store: sealed when this fleet has a master key. It logs none.

import type { StoredKey } from '../../core/state/records.ts';

export interface KeyKeeper {
  /** `place` is authenticated with the key, so that records cannot be swapped. */
  keep(pkcs8: Uint8Array, place: string): StoredKey;
  /** Throws when it cannot be opened. */
  open(stored: StoredKey, place: string): Uint8Array;
}

/** For a fleet without a master key. */
export const plainKeys: KeyKeeper = {
  keep: (pkcs8) => ({ pkcs8: Buffer.from(pkcs8).toString('base64') }),
  open: ({ pkcs8 }) => Buffer.from(pkcs8, 'base64'),
};
