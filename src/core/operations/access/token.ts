// What users do with tokens.

import { keys } from '../../state/keys.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import type { Decision } from '../decision.ts';
import { existing } from '../replace.ts';

/** The token opens nothing from this commit on. Throws `NotFound` and `RevisionMismatch`. */
export function revokeToken(
  snapshot: Snapshot,
  { name, ifRevision }: { readonly name: string; readonly ifRevision?: number },
): Decision {
  const key = keys.token(name);
  const token = existing(snapshot, 'token', key, ifRevision);
  const credential = snapshot.get('credential', keys.credential(token.value.status.tokenId));
  return {
    plan: {
      changes: [
        { key, ifRevision: token.revision, value: null },
        ...(credential ? [{ key: credential.key, ifRevision: credential.revision, value: null }] : []),
      ],
    },
    key,
    changed: true,
  };
}
