// What an instance asks for when its host is lost: its own rule, else that of its pool where it can apply.

import type { HostDown, HostProof, OnHostLoss } from '../../api/resources/host-state.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { keys } from './keys.ts';
import type { Snapshot } from './snapshot.ts';

/** Undefined: no rule, so its restart policy alone decides. */
export function onHostLossOf(
  snapshot: Pick<Snapshot, 'get'>,
  { spec }: Pick<Instance, 'spec'>,
): OnHostLoss | undefined {
  if (spec.onHostLoss !== undefined) return spec.onHostLoss;
  if (spec.run) return undefined; // its job decides
  const rule = snapshot.get('pool', keys.pool(spec.placement.pool ?? 'default'))?.value.spec.onHostLoss;
  return rule === 'replace' && spec.volumes ? 'wait' : rule; // its disks are on the lost host
}

/** The proof that the copy of this instance on the host runs no more. */
export function proofFor({ spec }: Pick<Instance, 'spec'>, down: HostDown): HostProof | undefined {
  if (!down.proof) return undefined;
  return down.proof.kind === 'self-stop' && spec.selfStop !== true ? undefined : down.proof;
}
