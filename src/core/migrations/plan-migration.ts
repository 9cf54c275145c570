// The plan of a move: the target by the real scheduler, what is copied, and all that is in the way. Pure; nothing is reserved.

import type { MigrateOptions, MigrationPlan } from '../../api/plans/migration-plan.ts';
import type { PlanReason } from '../../api/plans/host-plan.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { canonicalJson } from '../../base/json/canonical-json.ts';
import type { Migration, MoveWay } from '../../api/resources/migration.ts';
import { sha256 } from '../../base/sha256.ts';
import { belongingOf } from '../scheduler/neighbours/belonging.ts';
import type { Request } from '../scheduler/request.ts';
import { engineOf, type Placed, noOtherHost, placementAt, refusalsOf } from '../scheduler/schedule.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { heldGiB } from '../state/volumes.ts';
import { liveKindOf, obstaclesToLive } from './live.ts';
import { migrationRequest, volumesThatMove } from './migration-request.ts';
import { obstaclesToMigrate } from './obstacles.ts';

export interface PlannedMigration {
  readonly shown: MigrationPlan;
  /** Absent: there are obstacles. */
  readonly target?: { readonly placed: Placed; readonly request: Request };
}

export function planMigration(snapshot: Snapshot, instance: Instance, options: MigrateOptions): PlannedMigration {
  const { metadata, status } = instance;
  const allocation = snapshot.get('allocation', keys.allocation(metadata.id, status.incarnation))?.value;
  const live = options.live === true;
  const driver = allocation?.driver ?? '';
  const like = live ? liveKindOf(snapshot, status.host, driver) : undefined;
  const found = [
    ...obstaclesToMigrate(snapshot, instance),
    ...(live && allocation?.host === status.host ? obstaclesToLive(snapshot, instance, driver) : []),
  ];
  const request = allocation && migrationRequest(snapshot, instance, { driver, like });
  const seat = request && status.host !== undefined ? seatFor(snapshot, { instance, request, options }) : undefined;
  const direct = seat?.placed && directBetween(snapshot, status.host, seat.placed.host);
  const obstacles = [
    ...found,
    ...(seat?.obstacle ? [seat.obstacle] : []),
    ...(live && seat?.placed && direct === undefined ? [notDirect(seat.placed.host)] : []),
  ];
  const toId = seat?.placed && snapshot.get('host', keys.host(seat.placed.host))?.value.metadata.id;
  const way = direct === undefined ? 'relayed' : 'direct';
  const shown: MigrationPlan = {
    ...{ instance: metadata.name, instanceId: metadata.id, project: metadata.project },
    kind: live ? 'live' : 'cold',
    ...(status.host === undefined ? {} : { from: status.host }),
    ...(seat?.placed ? { to: seat.placed.host } : {}),
    ...(toId === undefined ? {} : { toId }),
    way,
    hash: hashOf(instance, { options, toId, way, obstacles }),
    options,
    copies: [
      { what: 'disk', gibMax: status.assigned?.['DISK_GB'] ?? 0 },
      ...volumesThatMove(snapshot, instance).map(({ value }) => ({
        what: `volume ${value.metadata.name}`,
        gibMax: heldGiB(value.spec),
      })),
    ],
    obstacles,
  };
  return {
    shown,
    ...(obstacles.length === 0 && request && seat?.placed ? { target: { placed: seat.placed, request } } : {}),
  };
}

/** Times, free room, scores and other hosts are not part of it: the commit checks room. */
function hashOf(
  { metadata, status }: Instance,
  agreed: {
    readonly options: MigrateOptions;
    readonly toId: string | undefined;
    readonly way: MoveWay;
    readonly obstacles: readonly PlanReason[];
  },
): string {
  const { options, toId = null, way, obstacles } = agreed;
  const { id, generation } = metadata;
  return sha256(
    canonicalJson({
      ...{ apiVersion: 1, verb: 'migrate', id, generation, incarnation: status.incarnation, toId, way },
      options: { ...options },
      obstacles: obstacles.map(({ code }) => code),
    }),
  ).slice(0, 32);
}

/** The certificates of the two hosts; undefined: the target cannot be reached, or one of the agents has an earlier version. */
export function directBetween(snapshot: Snapshot, from: string | undefined, to: string): Migration['direct'] {
  const source = from === undefined ? undefined : snapshot.get('host', keys.host(from))?.value.status;
  const target = snapshot.get('host', keys.host(to))?.value.status;
  if (source?.moveKey === undefined || target?.moveKey === undefined || target.takesMoves !== true) return undefined;
  return { from: source.moveKey, to: target.moveKey };
}

const notDirect = (to: string): PlanReason => ({
  code: 'Relayed',
  message: `its host cannot connect to ${to}, and memory does not pass through the control plane`,
});

interface Seat {
  readonly placed?: Placed;
  readonly obstacle?: PlanReason;
}

interface Wanted {
  readonly instance: Instance;
  readonly request: Request;
  readonly options: MigrateOptions;
}

/** In a trial: its own host takes nothing, and it is no neighbour there. */
function seatFor(snapshot: Snapshot, { instance, request, options: { to } }: Wanted): Seat {
  const engine = engineOf(snapshot);
  const { fleet } = engine;
  const from = instance.status.host ?? '';
  if (to === from) return { obstacle: { code: 'SameHost', message: `it is on ${from} already` } };
  const only = to === undefined ? undefined : fleet.slotOf(to);
  if (to !== undefined && only === undefined)
    return { obstacle: { code: 'NoSuchHost', message: `there is no host "${to}"` } };
  return fleet.tentatively(() => {
    const own = fleet.slotOf(from);
    if (own !== undefined) {
      fleet.groups.try(own, belongingOf(instance), -1);
      fleet.setAside(own);
    }
    if (only !== undefined)
      for (let slot = 0; slot < fleet.length; slot++) if (slot !== only && slot !== own) fleet.setAside(slot);
    const choice = engine.choose(request);
    if (choice) return { placed: placementAt(fleet, request, choice) };
    const refusals = refusalsOf(engine.countRefusals(request));
    const why =
      to === undefined
        ? noOtherHost(fleet.count - 1, refusals)
        : `host ${to} does not take it: ${refusals.map(({ reason }) => reason).join(', ')}`;
    return { obstacle: { code: 'NoHost', message: why } };
  });
}
