// The certificate authority of the fleet: made once, then shared by all servers of the store.

import { keys } from '../../state/keys.ts';
import { type Plan, unchanged } from '../../state/plan.ts';
import type { Authority, AuthorityGeneration } from '../../state/records.ts';
import type { Snapshot } from '../../state/snapshot.ts';

/** `made` is used only when the store has no authority yet. */
export function openAuthority(
  snapshot: Snapshot,
  made: AuthorityGeneration,
): { readonly plan: Plan; readonly authority: Authority } {
  const entry = snapshot.get('authority', keys.authority);
  if (entry) return { plan: unchanged(entry), authority: entry.value };
  const authority: Authority = { kind: 'authority', generations: [made], issuing: made.id };
  return { plan: { changes: [{ key: keys.authority, ifRevision: 0, value: authority }] }, authority };
}

/** The generation of the certificates that servers show: during a rotation, the one that every client knows. */
export function servingOf(authority: Authority): AuthorityGeneration {
  return authority.generations[0] ?? issuingOf(authority);
}

/** The generation that issues the certificates of hosts now. */
export function issuingOf({ generations, issuing }: Authority): AuthorityGeneration {
  const generation = generations.find(({ id }) => id === issuing) ?? generations.at(-1);
  if (generation === undefined) throw new TypeError('an authority without a generation');
  return generation;
}
