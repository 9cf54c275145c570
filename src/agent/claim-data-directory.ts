// A data directory for as long as an agent runs: the lock on it, the identity that is in it, and the lock on that identity, so that a
// copy of the directory does not run beside it. Never gives out an identity that another agent of this machine has.

import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { newId } from '../base/ids.ts';
import type { Prng } from '../base/prng.ts';
import { agentIdentity } from './agent-identity.ts';
import { type DataDirectoryLock, lockAgentId, lockDataDirectory } from './host/data-directory-lock.ts';
import { ledgerFileAt } from './ledger/ledger-file.ts';

export interface ClaimedDirectory extends DataDirectoryLock {
  readonly agentId: string;
}

/** Throws, with nothing held, when another agent has `directory` or a copy of it, or when its identity cannot be read or made. */
export async function claimDataDirectory(
  directory: string,
  { clock, prng }: { readonly clock: Clock; readonly prng: Prng },
): Promise<ClaimedDirectory> {
  const lock = await lockDataDirectory(directory);
  try {
    const place = join(directory, 'agent-id');
    const agentId = await agentIdentity({
      file: ledgerFileAt(place),
      place,
      makeId: () => newId('agent', clock.nowMs(), prng),
    });
    const identityLock = await lockAgentId(agentId, directory);
    return {
      agentId,
      async release() {
        await identityLock.release();
        await lock.release();
      },
    };
  } catch (error) {
    await lock.release();
    throw error;
  }
}
