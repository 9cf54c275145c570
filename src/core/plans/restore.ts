// The plan of a restore: which instances return to a host from which drains have moved them, and how: live if that is possible, else cold.
// Pure; nothing is reserved.

import type { PlannedGuest, PlanReason } from '../../api/plans/host-plan.ts';
import type { HostRestorePlan, RestoreOptions } from '../../api/plans/host-restore.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { hold } from '../explain/count-more.ts';
import { liveKindOf, obstaclesToLive } from '../migrations/live.ts';
import { migrationRequest } from '../migrations/migration-request.ts';
import { obstaclesToMigrate } from '../migrations/obstacles.ts';
import { directBetween } from '../migrations/plan-migration.ts';
import type { Fleet } from '../scheduler/fleet.ts';
import { belongingOf } from '../scheduler/neighbours/belonging.ts';
import type { Request } from '../scheduler/request.ts';
import { engineOf, placementAt, refusalsOf } from '../scheduler/schedule.ts';
import type { Context } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import type { Allocation } from '../state/records.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { coldReason, liveReason } from './guests-on.ts';
import { planHash } from './plan-hash.ts';

interface Asked {
  readonly host: string;
  readonly hostId: string;
  readonly options: RestoreOptions;
}

export function planRestore(snapshot: Snapshot, asked: Asked, ctx: Context): HostRestorePlan {
  const { host, hostId, options } = asked;
  const guests = seatAll(snapshot, asked, leftOf(snapshot, hostId, host));
  return {
    host,
    hostId,
    hash: planHash({ verb: 'restore', hostId, options, guests }),
    options,
    madeAtMs: ctx.nowMs,
    guests,
  };
}

/** Whose last move away was by a drain, and which run elsewhere now. */
function leftOf(snapshot: Snapshot, hostId: string, host: string): Instance[] {
  const left: Instance[] = [];
  for (const { value } of snapshot.list('instance')) {
    const { status, metadata } = value;
    const isElsewhere = status.host !== undefined && status.host !== host;
    if (status.drainedFrom?.hostId === hostId && isElsewhere && metadata.deletionRequestedAtMs === undefined)
      left.push(value);
  }
  const nameOf = ({ metadata: { project, name } }: Instance): string => `${project}/${name}`;
  return left.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

/** In a trial: each with the earlier ones in place, and no other host takes any. */
function seatAll(snapshot: Snapshot, { host, hostId }: Asked, left: readonly Instance[]): PlannedGuest[] {
  const { fleet } = engineOf(snapshot);
  const target = fleet.slotOf(host);
  return fleet.tentatively(() => {
    for (let slot = 0; slot < fleet.length; slot++) if (slot !== target) fleet.setAside(slot);
    return left.map((instance): PlannedGuest => {
      const { metadata, status } = instance;
      const allocation = snapshot.get('allocation', keys.allocation(metadata.id, status.incarnation))?.value;
      const base = {
        ...{ kind: 'instance' as const, id: metadata.id, project: metadata.project, name: metadata.name },
        ...{ generation: metadata.generation, incarnation: status.incarnation, from: status.host ?? '' },
        amounts: status.assigned ?? {},
      };
      const obstacles = obstaclesToMigrate(snapshot, instance);
      if (obstacles.length > 0 || allocation === undefined) return { ...base, action: 'stays', reasons: obstacles };
      const way = seat(snapshot, fleet, { instance, allocation, host });
      return way.returns
        ? { ...base, action: 'move', target: host, targetId: hostId, reasons: [way.reason] }
        : { ...base, action: 'stays', reasons: [way.reason] };
    });
  });
}

interface Seated {
  readonly instance: Instance;
  readonly allocation: Allocation;
  readonly host: string;
}

function seat(
  snapshot: Snapshot,
  fleet: Fleet,
  { instance, allocation, host }: Seated,
): { readonly returns: boolean; readonly reason: PlanReason } {
  const engine = engineOf(snapshot);
  const { driver } = allocation;
  const own = fleet.slotOf(instance.status.host ?? '');
  if (own !== undefined) fleet.groups.try(own, belongingOf(instance), -1);
  const like = liveKindOf(snapshot, instance.status.host, driver);
  const [obstacle] = obstaclesToLive(snapshot, instance, driver);
  const isDirect = directBetween(snapshot, instance.status.host, host) !== undefined;
  const cold = migrationRequest(snapshot, instance, { driver });
  const live = like && isDirect && !obstacle ? [migrationRequest(snapshot, instance, { driver, like })] : [];
  for (const request of [...live, cold]) {
    const choice = engine.choose(request);
    if (!choice) continue;
    hold(fleet, request, choice.slot, placementAt(fleet, request, choice).held, 1);
    return { returns: true, reason: request === cold ? coldReason : liveReason };
  }
  return { returns: false, reason: { code: 'NoHost', message: whyNot(snapshot, cold, host) } };
}

function whyNot(snapshot: Snapshot, request: Request, host: string): string {
  const engine = engineOf(snapshot);
  const reasons = refusalsOf(engine.countRefusals(request)).map(({ reason }) => reason);
  return `host ${host} does not take it: ${reasons.join(', ')}`;
}
