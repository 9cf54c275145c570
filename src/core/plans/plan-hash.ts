// The hash of a plan: what its user agrees to, and nothing that changes by itself. Times, free room, scores, texts and other hosts are not
// part of it: the commit of each step checks room.

import type { HostPlan, PlannedGuest } from '../../api/plans/host-plan.ts';
import type { RestoreOptions } from '../../api/plans/host-restore.ts';
import { canonicalJson } from '../../base/json/canonical-json.ts';
import { sha256 } from '../../base/sha256.ts';

const apiVersion = 1;

interface Agreed {
  readonly verb: HostPlan['verb'] | 'restore';
  readonly hostId: string;
  readonly options: HostPlan['options'] | RestoreOptions;
  readonly guests: readonly PlannedGuest[];
}

export function planHash({ verb, hostId, options, guests }: Agreed): string {
  const agreed = guests.map(({ kind, id, generation, incarnation, action, targetId = null, reasons }) => ({
    ...{ kind, id, generation, incarnation, action, targetId },
    reasons: reasons.map(({ code }) => code),
  }));
  return sha256(canonicalJson({ apiVersion, verb, hostId, options: { ...options }, guests: agreed })).slice(0, 32);
}
