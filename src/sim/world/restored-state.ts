// The records after a restore: what must be true of them once the cluster is at rest.

import { verify } from '../../core/verify/verify.ts';
import { type OverUse, overUse } from '../../core/ledger/ledger.ts';
import { Cache, type StoredEvent } from '../../core/state/cache.ts';
import { conditionOf } from '../../core/state/conditions.ts';
import { restored } from '../../core/state/guest-phase.ts';
import { keys } from '../../core/state/keys.ts';
import type { FindingCode } from '../../api/verify.ts';
import { cacheFaults } from '../checkers/cache-faults.ts';
import type { CommittedState } from '../history.ts';

export interface RestoredParts {
  readonly state: CommittedState;
  readonly servers: () => readonly { readonly name: string; readonly cache: Cache }[];
  readonly trusted: (host: string) => boolean;
  readonly honest: (host: string) => boolean;
}

interface Complaint {
  readonly invariant: number;
  readonly message: string;
}

/** What the check may find for good: what only hosts know, and what an operator had made too small. */
const ofTheHosts: ReadonlySet<FindingCode> = new Set(['UnknownGuest', 'UnknownVolume', 'SecondGuest', 'OverUse']);

export function restoredUnrest({ state, servers, honest }: RestoredParts): Complaint | undefined {
  if (state.get('cluster', keys.cluster)?.closed) return { invariant: 3, message: 'the store stays closed' };
  for (const { metadata, status } of state.list('instance')) {
    const running = conditionOf(status.conditions, 'Running');
    const waits = running?.reason === restored && status.host !== undefined && honest(status.host);
    if (waits && status.phase !== 'Failed')
      return { invariant: 3, message: `${metadata.name} is not told of by ${status.host} after the restore` };
  }
  for (const { metadata, status } of state.list('instance'))
    if (status.phase === 'Scheduled' && status.host !== undefined && honest(status.host))
      return { invariant: 8, message: `${metadata.name} does not come to run on ${status.host} after the restore` };
  for (const { name, cache } of servers()) {
    const [message] = cacheFaults(state, cache, name);
    if (message !== undefined) return { invariant: 6, message };
  }
  return undefined;
}

export function verifyUnrest(snapshot: Cache, { honest }: Pick<RestoredParts, 'honest'>): Complaint | undefined {
  for (const found of verify(snapshot)) {
    if (!found || ofTheHosts.has(found.code) || (found.host !== undefined && !honest(found.host))) continue;
    return { invariant: 5, message: `after a restore, ${found.subject}: ${found.message}` };
  }
  return undefined;
}

/** Over-use after a restore: the over-use that the backup has may stay, and must never grow. */
export class RestoredLedger {
  readonly #parts: Pick<RestoredParts, 'state' | 'trusted'>;
  /** By provider and resource class: what is held beyond the capacity. */
  readonly #excess = new Map<string, number>();

  constructor(parts: Pick<RestoredParts, 'state' | 'trusted'>) {
    this.#parts = parts;
  }

  noteBackup(backup: Cache): void {
    for (const over of overUse(backup)) this.#excess.set(overName(over), over.used - over.capacity);
  }

  unrest(snapshot: Cache): Complaint | undefined {
    const { state, trusted } = this.#parts;
    // The capacity of a host whose agent lies means nothing; that of another system's host is less while a hold looks fresh.
    const isCertain = (host: string): boolean =>
      trusted(host) && state.get('host', keys.host(host))?.status.outside === undefined;
    const overs = new Map(
      overUse(snapshot)
        .filter(({ providerId }) => isCertain(state.get('provider', keys.provider(providerId))?.host ?? ''))
        .map((over) => [overName(over), over]),
    );
    const over = [...overs].find(([name, { used, capacity }]) => used - capacity > (this.#excess.get(name) ?? 0))?.[1];
    for (const name of this.#excess.keys()) {
      const { used, capacity } = overs.get(name) ?? { used: 0, capacity: 0 };
      this.#excess.set(name, used - capacity);
    }
    return (
      over && {
        invariant: 1,
        message: `after a restore ${over.used} of ${over.capacity} ${over.resourceClass} are held`,
      }
    );
  }
}

export function snapshotOf(entries: Iterable<StoredEvent>): Cache {
  const cache = new Cache(() => 0);
  cache.reset([...entries], 1);
  return cache;
}

function overName({ providerId, resourceClass }: OverUse): string {
  return `${providerId} ${resourceClass}`;
}
