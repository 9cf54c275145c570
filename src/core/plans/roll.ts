// The plan of the maintenance of several hosts: which of them can be emptied together, in which order, and which cannot be emptied at all. Each
// group is planned as drains with the real scheduler, with all hosts of the group closed. Pure; nothing is reserved.

import { ApiError } from '../../api/errors.ts';
import type { DrainOptions, PlannedGuest, PlanReason } from '../../api/plans/host-plan.ts';
import type { BlockedHost, PlannedRollHost, RollOptions, RollPlan } from '../../api/plans/host-roll.ts';
import type { Host } from '../../api/resources/host.ts';
import { canonicalJson } from '../../base/json/canonical-json.ts';
import { sha256 } from '../../base/sha256.ts';
import { isDraining, isReady } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { boundsOf } from '../workloads/pass.ts';
import { guestsOfPlan, type Seated } from './drain.ts';
import { isLive } from './guests-on.ts';

/** Hosts that are tried for one group after the first, without success: each try plans all drains of the group. */
const misfitsMax = 8;

export function drainOptionsOf({ stopOthers, movesMax, drainDeadlineMs }: RollOptions): DrainOptions {
  return { stopOthers, movesMax, deadlineMs: drainDeadlineMs, atDeadline: 'leave' };
}

/** Throws `NotFound`, naming the field. */
export function planRoll(snapshot: Snapshot, options: RollOptions, ctx: Context): RollPlan {
  const blocked: BlockedHost[] = [];
  const left: Host[] = [];
  for (const host of candidates(snapshot, options)) {
    const reasons = obstaclesTo(snapshot, host, options);
    if (reasons.length === 0) left.push(host);
    else blocked.push({ host: host.metadata.name, hostId: host.metadata.id, reasons });
  }
  const hosts: PlannedRollHost[] = [];
  for (let group = 1; left.length > 0; group++) hosts.push(...nextGroup(snapshot, { left, options, group }));
  return { hash: hashOf(options, hosts, blocked), options, madeAtMs: ctx.nowMs, hosts, blocked };
}

/** In the order of their names; a host on which a control plane runs comes last. */
function candidates(snapshot: Snapshot, { pool, hosts }: RollOptions): readonly Host[] {
  if ((pool === undefined) === (hosts === undefined))
    throw new ApiError('InvalidRequest', 'name either a pool or hosts', {
      field: pool === undefined ? 'hosts' : 'pool',
    });
  const found = hosts === undefined ? inPool(snapshot, pool ?? '') : hosts.map((name) => named(snapshot, name));
  const last = ({ status }: Host): number => (status.controlPlane === undefined ? 0 : 1);
  return found.toSorted((a, b) => last(a) - last(b) || (a.metadata.name < b.metadata.name ? -1 : 1));
}

function named(snapshot: Snapshot, name: string): Host {
  const host = snapshot.get('host', keys.host(name))?.value;
  if (!host)
    throw new ApiError('NotFound', `there is no host "${name}"; "berth host ls" shows the hosts`, { field: 'hosts' });
  return host;
}

function inPool(snapshot: Snapshot, pool: string): Host[] {
  if (!snapshot.get('pool', keys.pool(pool)))
    throw new ApiError('NotFound', `there is no pool "${pool}"; "berth pool ls" shows the pools`, { field: 'pool' });
  return Array.from(snapshot.list('host'), ({ value }) => value).filter(({ spec }) => spec.pool === pool);
}

/** Whatever the others do: why this host cannot be emptied now. */
function obstaclesTo(snapshot: Snapshot, host: Host, options: RollOptions): PlanReason[] {
  const { status } = host;
  if (status.outside)
    return [{ code: 'OutsideHost', message: `inventory ${status.outside.inventory} owns it, and it has no agent` }];
  if (!isReady(status)) return [{ code: 'NotReady', message: 'its agent is not ready' }];
  if (isDraining(host)) return [{ code: 'Draining', message: 'it is drained by another plan' }];
  if (status.bootId === undefined) return [{ code: 'NoBootId', message: 'its agent reports no boot id' }];
  const planned = planGroup(snapshot, [host.metadata.name], options);
  return planned.misfits.map(({ name, reasons }) => ({
    code: reasons[0]?.code ?? 'Stays',
    message: `${name}: ${reasons.map(({ message }) => message).join('; ')}`,
  }));
}

interface Rest {
  /** Hosts without a group; those of the group are removed. */
  readonly left: Host[];
  readonly options: RollOptions;
  readonly group: number;
}

function nextGroup(snapshot: Snapshot, { left, options, group }: Rest): PlannedRollHost[] {
  const [first] = left.splice(0, 1);
  if (first === undefined) return [];
  const members = [first];
  let planned = planGroup(snapshot, namesOf(members), options);
  let misfits = 0;
  for (let i = 0; i < left.length && members.length < options.maxAtOnce && misfits < misfitsMax; ) {
    const host = left[i];
    const tried = host && planGroup(snapshot, namesOf([...members, host]), options);
    if (host === undefined || tried === undefined || tried.misfits.length > 0) {
      misfits += 1;
      i += 1;
      continue;
    }
    members.push(host);
    left.splice(i, 1);
    planned = tried;
  }
  return members.map(({ metadata: { name, id }, status }) => ({
    ...{ host: name, hostId: id, group, byCommand: status.maintains === true },
    guests: planned.guests.get(name) ?? [],
  }));
}

const namesOf = (hosts: readonly Host[]): string[] => hosts.map(({ metadata }) => metadata.name);

export interface PlannedGroup {
  readonly guests: ReadonlyMap<string, PlannedGuest[]>;
  /** What cannot leave, and copies of workloads with one copy per host of which too many would be missing. */
  readonly misfits: readonly PlannedGuest[];
}

/** Drains of all hosts of a group, each with the others closed, and with what has left those before. Throws `NotFound`. */
export function planGroup(snapshot: Snapshot, hosts: readonly string[], options: RollOptions): PlannedGroup {
  const seated: Seated[] = [];
  const guests = new Map<string, PlannedGuest[]>();
  for (const host of hosts) {
    const asked = { verb: 'drain', host, options: drainOptionsOf(options) } as const;
    const made = guestsOfPlan(snapshot, asked, { closed: hosts, seated });
    seated.push(...made.seated);
    guests.set(host, made.guests);
  }
  const all = [...guests.values()].flat();
  const misfits = all.filter(({ action }) => action === 'stays');
  return { guests, misfits: hosts.length > 1 ? [...misfits, ...tooMany(snapshot, all)] : misfits };
}

/** A copy that has its host to itself is missing until its host is back: several hosts at once are bound by `maxUnavailable`. */
function tooMany(snapshot: Snapshot, all: readonly PlannedGuest[]): PlannedGuest[] {
  const missing = new Map<string, PlannedGuest[]>();
  for (const guest of all) {
    const workload = snapshot.instanceById(guest.id)?.value.status.workload;
    if (workload === undefined || !guest.reasons.some(({ code }) => code === 'PerHost')) continue;
    const key = keys.workload(guest.project, workload.name);
    missing.set(key, [...(missing.get(key) ?? []), guest]);
  }
  return [...missing].flatMap(([key, guests]) => {
    const workload = snapshot.get('workload', key)?.value;
    if (workload === undefined) return [];
    const hosts = workload.status.wanted;
    return guests.length > Math.max(1, boundsOf(workload.spec.strategy, hosts).unavailable) ? guests : [];
  });
}

/** What the operator agrees to: the order, what is left out, and which guests are interrupted. Others come and go while a fleet works. */
function hashOf(options: RollOptions, hosts: readonly PlannedRollHost[], blocked: readonly BlockedHost[]): string {
  const agreed = hosts.map(({ hostId, group, byCommand, guests }) => ({
    ...{ hostId, group, byCommand },
    interrupted: guests.filter(isInterrupted).map(({ id, action }) => [id, action]),
  }));
  const without = blocked.map(({ hostId, reasons }) => [hostId, ...reasons.map(({ code }) => code)]);
  return sha256(canonicalJson({ apiVersion: 1, verb: 'roll', options: { ...options }, agreed, without })).slice(0, 32);
}

/** It stands still for longer than a moment. */
export function isInterrupted(guest: PlannedGuest): boolean {
  return guest.action === 'stop' || (guest.action === 'move' && !isLive(guest));
}
