// A copy of a workload: what a pass needs to know of one of its instances.

import { isToRestart } from '../../api/instances/restart-rule.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { conditionOf } from '../state/conditions.ts';
import { hostLost, mayRunUnseen } from '../state/guest-phase.ts';
import { keys } from '../state/keys.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { instancesOf } from '../state/views/workload-copies.ts';

export interface Copy {
  readonly key: string;
  readonly id: string;
  readonly ordinal: number;
  readonly revision: number;
  /** That its record names, where the template of that one is the present template. */
  readonly formerRevision?: number;
  readonly ready: boolean;
  readonly readyAtMs: number;
  /** It has ended and does not start again by itself, or its host is lost: it is to be replaced. */
  readonly over: boolean;
  /** Its host is lost: that is no failure of its own. */
  readonly lost: boolean;
  /** Its deletion was requested, and its host holds room for it. */
  readonly leaving: boolean;
  /** A drain of its host asks to replace it. */
  readonly evicted?: true;
  readonly host?: string;
  /** The label `zone` of its host. */
  readonly zone?: string;
  /** Its host is Ready and not paused. */
  readonly hostReady: boolean;
  /** Its host is Ready: what it is to remove goes soon. */
  readonly hostUp: boolean;
  readonly protected: boolean;
  /** Lower ones go first. */
  readonly cost: number;
  readonly restarts: number;
  readonly createdAtMs: number;
}

/** Older than every other: a copy that a drain asks to replace is replaced as in an update. */
const evictedRevision = 0;

/** It is replaced as in an update. */
export function asEvicted(copy: Copy): Copy {
  return { ...copy, revision: evictedRevision, evicted: true };
}

/** A label with a whole number: copies with a lower one are removed first. */
const costLabel = 'deletion-cost';

/** Of the workload with this id. */
export function copiesOf(snapshot: Snapshot, workloadId: string): readonly Copy[] {
  return instancesOf(snapshot, workloadId).map((entry) => copyOf(snapshot, entry));
}

/** Of its instance. */
export function nameOf({ key }: Copy): string {
  return key.slice(key.lastIndexOf('/') + 1);
}

export function copyOf(snapshot: Snapshot, { key, value }: Entry<Instance>): Copy {
  const { metadata, spec, status } = value;
  const host = status.host === undefined ? undefined : snapshot.get('host', keys.host(status.host))?.value;
  const hostUp = conditionOf(host?.status.conditions ?? [], 'Ready')?.status === 'True';
  const lost = isLost(value);
  const zone = host?.metadata.labels['zone'];
  const cost = Number(metadata.labels[costLabel] ?? 0);
  return {
    key,
    id: metadata.id,
    ordinal: status.workload?.ordinal ?? 0,
    revision: status.evicted ? evictedRevision : (status.workload?.revision ?? 0),
    ready: status.phase === 'Running' && status.guest?.ready === true,
    readyAtMs: status.readyAtMs ?? status.runningAtMs ?? metadata.createdAtMs,
    over: lost || hasEnded(value),
    lost,
    leaving: metadata.deletionRequestedAtMs !== undefined,
    ...(status.evicted ? { evicted: true as const } : {}),
    ...(status.host === undefined ? {} : { host: status.host }),
    ...(zone === undefined ? {} : { zone }),
    hostReady: hostUp && host?.spec.paused !== true,
    hostUp,
    protected: spec.protected === true,
    cost: Number.isSafeInteger(cost) ? cost : 0,
    restarts: status.restartCount,
    createdAtMs: metadata.createdAtMs,
  };
}

/** One that is exclusive waits for its host: a second copy must not run. */
function isLost({ spec, status }: Instance): boolean {
  const { reason } = conditionOf(status.conditions, 'Running') ?? {};
  return status.phase === 'Failed' && (reason === hostLost || reason === 'HostRemoved') && !spec.exclusive;
}

function hasEnded(instance: Instance): boolean {
  const { phase } = instance.status;
  if (phase !== 'Failed' && phase !== 'Exited') return false;
  return !isToRestart(instance) && !(instance.spec.exclusive && mayRunUnseen(instance));
}
