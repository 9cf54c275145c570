// What is on a host and what becomes of each when the host is emptied or gone, before anyone looks for targets.

import type { DrainOptions, PlannedGuest, PlanReason, PlanVerb } from '../../api/plans/host-plan.ts';
import { isToRestart } from '../../api/instances/restart-rule.ts';
import { type Instance, isToBeOn } from '../../api/resources/instance.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import { holdsOnlyDisk } from '../ledger/ledger.ts';
import { hasLikeHost, liveKindOf, obstaclesToLive } from '../migrations/live.ts';
import { migrationRequest } from '../migrations/migration-request.ts';
import { isMigrating } from '../migrations/migration-state.ts';
import { obstaclesToMigrate } from '../migrations/obstacles.ts';
import { type Request, requestOf } from '../scheduler/request.ts';
import { keys } from '../state/keys.ts';
import type { Allocation } from '../state/records.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { holderOf } from '../state/volumes.ts';
import { endOf, warmPoolOf, workloadOf } from './owner.ts';

/** One that needs a place elsewhere. */
export interface Mover {
  readonly instance: Instance;
  readonly request: Request;
  /** It goes after all others, and needs no target: its workload has one copy per host. */
  readonly last: boolean;
  /** What it does where no host takes it: it keeps running here, or it waits for room. */
  readonly elsewhere: 'stays' | 'waits';
}

export interface Found {
  readonly guest: PlannedGuest;
  readonly mover?: Mover;
}

interface Asked {
  readonly verb: PlanVerb;
  readonly host: string;
  readonly options: DrainOptions;
}

export function guestsOn(snapshot: Snapshot, asked: Asked): readonly Found[] {
  const found: Found[] = [];
  for (const { value } of snapshot.allocationsOnHost(asked.host)) {
    const { consumer } = value;
    if (consumer.kind === undefined) {
      const instance = snapshot.get('instance', keys.instance(consumer.project, consumer.name))?.value;
      if (instance?.metadata.id === consumer.id && instance.status.incarnation === consumer.incarnation)
        found.push(instanceFound(snapshot, instance, value, asked));
    } else found.push({ guest: otherOf(snapshot, value, asked.verb) });
  }
  return found;
}

/** A task, a volume or a claim of another system. */
function otherOf(snapshot: Snapshot, allocation: Allocation, verb: PlanVerb): PlannedGuest {
  const { consumer } = allocation;
  const { kind = 'instance' as const, id, project, name, incarnation } = consumer;
  const base = { kind, id, project, name, generation: 1, incarnation, amounts: amountsOf(allocation) };
  if (kind === 'volume') {
    const gone = verb === 'evacuate';
    const volume = snapshot.get('volume', keys.volume(project, name))?.value;
    const holder = volume && holderOf(snapshot, volume)?.value.metadata.name;
    const stays = holder === undefined ? 'volumes stay with their host' : `it stays unless instance ${holder} moves`;
    const message = gone ? 'it was on this host only' : stays;
    return { ...base, action: gone ? 'fails' : 'rests', reasons: [{ code: 'LocalVolume', message }] };
  }
  if (kind === 'outside') {
    const message = 'another system holds it through the Placement API, and only that system can move it';
    return { ...base, action: 'rests', reasons: [{ code: 'OutsideClaim', message }] };
  }
  if (verb === 'evacuate')
    return { ...base, action: 'fails', reasons: [{ code: 'RoomLost', message: 'the room that it held is gone' }] };
  const task = snapshot.get('task', keys.task(project, name))?.value;
  const endsAtMs = task?.status.heldUntilMs;
  const reasons = [{ code: 'Expires', message: 'the room is held for a limited time' }];
  return { ...base, action: 'ends', reasons, ...(endsAtMs === undefined ? {} : { endsAtMs }) };
}

function instanceFound(snapshot: Snapshot, instance: Instance, allocation: Allocation, asked: Asked): Found {
  const { metadata, status } = instance;
  const base = {
    kind: 'instance' as const,
    ...{ id: metadata.id, project: metadata.project, name: metadata.name, generation: metadata.generation },
    incarnation: status.incarnation,
    amounts: amountsOf(allocation),
  };
  const decided =
    asked.verb === 'drain' ? whenDrained(snapshot, instance, allocation, asked) : whenGone(snapshot, instance);
  const { mover, ...guest } = decided;
  const request =
    decided.action === 'move'
      ? migrationRequest(snapshot, instance, {
          driver: allocation.driver,
          like: isLive(decided) ? liveKindOf(snapshot, allocation.host, allocation.driver) : undefined,
        })
      : requestOf(snapshot, instance);
  const moving = mover && { instance, request, ...mover };
  return { guest: { ...base, ...guest }, ...(moving ? { mover: moving } : {}) };
}

type Decided = Pick<PlannedGuest, 'action' | 'reasons'> & {
  readonly endsAtMs?: number;
  readonly mover?: Pick<Mover, 'last' | 'elsewhere'>;
};

function whenDrained(snapshot: Snapshot, instance: Instance, allocation: Allocation, { options }: Asked): Decided {
  if (isAtRest(instance, allocation))
    return { action: 'rests', reasons: [{ code: 'NotRunning', message: 'it does not run; its disk stays here' }] };
  const end = endOf(snapshot, instance);
  if (end) {
    const { atMs, ...reason } = end;
    return { action: 'ends', reasons: [reason], ...(atMs === undefined ? {} : { endsAtMs: atMs }) };
  }
  const pool = warmPoolOf(snapshot, instance);
  if (pool !== undefined) return replacedByWarmPool(pool);
  const workload = workloadOf(snapshot, instance);
  const obstacles = workload ? obstaclesToReplace(instance, workload) : obstaclesToMigrate(snapshot, instance);
  if (obstacles.length > 0) return { action: options.stopOthers ? 'stop' : 'stays', reasons: obstacles };
  if (!workload) {
    return {
      action: 'move',
      reasons: [wayOf(snapshot, instance, allocation)],
      mover: { last: false, elsewhere: 'stays' },
    };
  }
  const message = workload.perHost
    ? `workload ${workload.name} has one copy per host`
    : `workload ${workload.name} creates another copy`;
  return {
    action: 'replace',
    reasons: [{ code: workload.perHost ? 'PerHost' : 'Workload', message }],
    mover: { last: workload.perHost, elsewhere: 'stays' },
  };
}

/** How a planned move goes. */
export const liveReason: PlanReason = {
  code: 'Live',
  message: 'it keeps running while it is copied, and is paused for a moment',
};
export const coldReason: PlanReason = { code: 'Cold', message: 'it is stopped, copied and started there' };

/** Whether a planned move is one of a guest that runs on. */
export function isLive({ action, reasons }: Pick<PlannedGuest, 'action' | 'reasons'>): boolean {
  return action === 'move' && reasons.some(({ code }) => code === liveReason.code);
}

function wayOf(snapshot: Snapshot, instance: Instance, { host, driver }: Allocation): PlanReason {
  const [obstacle] = obstaclesToLive(snapshot, instance, driver);
  if (obstacle === undefined && hasLikeHost(snapshot, host, driver)) return liveReason;
  if (obstacle?.code !== 'VolumeStays') return coldReason;
  return { ...coldReason, message: `${coldReason.message} (${obstacle.message})` };
}

function replacedByWarmPool(name: string): Decided {
  const message = `warm pool ${name} prepares another one, then removes this one`;
  return {
    action: 'replace',
    reasons: [{ code: 'WarmPool', message }],
    mover: { last: false, elsewhere: 'stays' },
  };
}

/** The host never returns. */
function whenGone(snapshot: Snapshot, instance: Instance): Decided {
  const { spec } = instance;
  if (instance.metadata.deletionRequestedAtMs !== undefined)
    return { action: 'ends', reasons: [{ code: 'Deleting', message: 'it is being deleted' }] };
  const workload = workloadOf(snapshot, instance);
  const volumes = (spec.volumes ?? []).length > 0;
  if (volumes)
    return { action: 'fails', reasons: [{ code: 'LocalVolume', message: 'its volumes were on this host only' }] };
  const pool = warmPoolOf(snapshot, instance);
  if (pool !== undefined) return replacedByWarmPool(pool);
  const end = endOf(snapshot, instance);
  if (end?.code === 'JobAttempt')
    return {
      action: 'fails',
      reasons: [{ code: 'JobAttempt', message: 'its job makes another attempt if it has retries left' }],
    };
  const mover = { last: workload?.perHost === true, elsewhere: 'waits' as const };
  if (workload)
    return {
      action: 'replace',
      reasons: [{ code: 'Workload', message: `workload ${workload.name} creates another copy` }],
      mover,
    };
  const failed: Instance = { ...instance, status: { ...instance.status, phase: 'Failed' } };
  if (isToRestart(failed) && spec.restart?.disk !== 'kept')
    return {
      action: 'restart',
      reasons: [{ code: 'FreshDisk', message: 'its restart policy starts it elsewhere, with a fresh disk' }],
      mover,
    };
  return { action: 'fails', reasons: [{ code: 'DiskLost', message: 'its disk was on this host only' }] };
}

/** No guest of it runs or is about to. A cold move stops the guest, which then starts on the target, or here again when the move fails. */
export function isAtRest(instance: Instance, allocation: Allocation): boolean {
  const { spec, status } = instance;
  const { phase } = status;
  if (isMigrating(status)) return false;
  if (holdsOnlyDisk(allocation)) return true;
  if (phase === 'Stopped') return !isToBeOn(spec);
  return (phase === 'Failed' || phase === 'Exited') && !isToRestart(instance);
}

function obstaclesToReplace(
  { metadata, spec }: Instance,
  workload: { readonly name: string; readonly paused: boolean },
): PlanReason[] {
  const reasons: PlanReason[] = [];
  if (spec.protected === true)
    reasons.push({
      code: 'Protected',
      message: `it is protected from deletion: "berth unprotect ${metadata.name}"`,
    });
  if (workload.paused)
    reasons.push({
      code: 'WorkloadPaused',
      message: `its workload replaces nothing while it is paused: "berth workload resume ${workload.name}"`,
    });
  return reasons;
}

function amountsOf({ amounts }: Allocation): Amounts {
  const sum: Record<string, number> = {};
  for (const held of Object.values(amounts))
    for (const [resourceClass, amount] of Object.entries(held)) sum[resourceClass] = (sum[resourceClass] ?? 0) + amount;
  return sum;
}
