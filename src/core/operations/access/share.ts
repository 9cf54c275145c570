// A share: a token for one instance and some ways into it. It permits what its maker may do there, no longer than they may do it.

import type { ShareVerb } from '../../../api/access.ts';
import { ApiError } from '../../../api/errors.ts';
import type { Instance } from '../../../api/resources/instance.ts';
import type { TokenSpec } from '../../../api/resources/token.ts';
import { assertMayOn } from '../../access/may.ts';
import type { Principal } from '../../access/principal.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import type { Decision } from '../decision.ts';
import { assertNothingBound, expiryOf, issueToken, makerOf, shareLifeMs, type TokenProof } from './token.ts';

export interface ShareRequest {
  /** Absent: after the instance. */
  readonly name?: string | undefined;
  readonly description: string;
  readonly verbs: readonly ShareVerb[];
  readonly expiresInSec?: number | undefined;
  readonly proof: TokenProof;
}

/** Throws `NotFound` for an instance that the principal may not see, and `Forbidden` for a verb that they do not have there. */
export function createShare(
  snapshot: Snapshot,
  principal: Principal,
  { instance, request }: { readonly instance: Entry<Instance>; readonly request: ShareRequest },
  ctx: Context,
): Decision {
  const { metadata } = instance.value;
  for (const verb of request.verbs) assertMayOn(snapshot, principal, verb, instance.value);
  if (metadata.deletionRequestedAtMs !== undefined)
    throw new ApiError('Conflict', `instance "${metadata.name}" is being deleted, and a share would end with it`);
  const name = request.name ?? freeName(snapshot, metadata.name);
  assertNothingBound(snapshot, principal, name);
  const maker = makerOf(snapshot, principal);
  const spec: TokenSpec = {
    description: request.description,
    project: metadata.project,
    share: { instance: metadata.name, instanceId: metadata.id, verbs: [...request.verbs] },
    ...maker.fields,
    ...expiryOf(snapshot, principal, { expiresInSec: request.expiresInSec, defaultMs: shareLifeMs }, ctx),
  };
  const issued = issueToken(snapshot, { name, spec, proof: request.proof }, ctx);
  return { ...issued, plan: { ...issued.plan, conditions: maker.conditions } };
}

const nameLengthMax = 63;

function freeName(snapshot: Snapshot, instance: string): string {
  for (let count = 1; ; count++) {
    const suffix = count === 1 ? '' : `-${count}`;
    const room = nameLengthMax - 'share-'.length - suffix.length;
    const name = `share-${instance.slice(0, room).replace(/-+$/, '')}${suffix}`;
    if (!snapshot.get('token', keys.token(name))) return name;
  }
}
