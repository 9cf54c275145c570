// The moves of a host in tests that are about something else: there are none.

import type { MoveSource } from './move.ts';
import { Moves } from './moves.ts';
import type { Driver } from '../drivers/driver.ts';
import type { Ledger } from '../ledger/ledger.ts';

export function noMoves(parts: { readonly drivers: readonly Driver[]; readonly ledger: Ledger }): {
  readonly moves: Moves;
  readonly moveSource: MoveSource;
  readonly volumeFiles: undefined;
} {
  const never = () => Promise.reject(new Error('nothing moves here'));
  return {
    moves: new Moves({ ...parts, volumeFiles: undefined, files: undefined }),
    moveSource: { manifest: never, read: never },
    volumeFiles: undefined,
  };
}
