// Which agent this is: an id that is made once in a data directory and lives as long as it. The control plane gives a host to one id
// alone, so it must be on the disk before anyone hears of it, and what is damaged is never replaced by another.

import { agentIdPattern } from '../api/agent-protocol.ts';
import type { LedgerFile } from './ledger/ledger.ts';

export interface IdentityOptions {
  readonly file: Pick<LedgerFile, 'read' | 'write'>;
  /** Where that is, for people. */
  readonly place: string;
  /** `newId('agent', ...)`. */
  readonly makeId: () => string;
}

/** The id of the data directory; durable when it resolves. Throws when the file is there and holds no id. */
export async function agentIdentity({ file, place, makeId }: IdentityOptions): Promise<string> {
  const kept = await file.read();
  if (kept === null) {
    const made = makeId();
    await file.write(`${made}\n`);
    return made;
  }
  const id = kept.trim();
  if (!new RegExp(agentIdPattern, 'u').test(id)) {
    throw new Error(
      `cannot tell which agent this is: ${place} does not hold one line "agent_..." with 26 characters; write there the agentId that "berth host show NAME -o yaml" has, or remove the file where this host was never registered`,
    );
  }
  return id;
}
