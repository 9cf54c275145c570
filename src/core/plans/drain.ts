// The plan of a host that is to be emptied, or that is gone: what happens to each thing on it, in which order, and where it would go by the
// real scheduler on a copy of the ledger. Pure; nothing is reserved.

import { ApiError } from '../../api/errors.ts';
import type { DrainOptions, HostPlan, PlannedGuest, PlanVerb, Survival } from '../../api/plans/host-plan.ts';
import { hold } from '../explain/count-more.ts';
import { belongingOf } from '../scheduler/neighbours/belonging.ts';
import type { Fleet } from '../scheduler/fleet.ts';
import type { Request } from '../scheduler/request.ts';
import { engineOf, noOtherHost, placementAt, refusalsOf } from '../scheduler/schedule.ts';
import { finish } from '../scheduler/steps.ts';
import type { Context } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { type Found, guestsOn, type Mover } from './guests-on.ts';
import { RequestsByHost, survivalOf } from './n-minus-one.ts';
import { planHash } from './plan-hash.ts';

/** A plan that was made longer ago is not applied. */
export const planKeptMs = 3_600_000;

export interface PlanInput {
  readonly verb: PlanVerb;
  readonly host: string;
  readonly options: DrainOptions;
}

/** Throws `NotFound`. */
export function planHost(snapshot: Snapshot, input: PlanInput, ctx: Context): HostPlan {
  const made = guestsOfPlan(snapshot, input);
  const requests = new RequestsByHost(snapshot);
  const before = finish(survivalOf(snapshot, undefined, requests));
  const { room, after } = afterwards(snapshot, { host: input.host, seated: made.seated, requests });
  const { verb, host, options } = input;
  return {
    ...{ verb, host, hostId: made.hostId, options },
    hash: planHash({ verb, hostId: made.hostId, options, guests: made.guests }),
    ...{ madeAtMs: ctx.nowMs, expiresAtMs: ctx.nowMs + planKeptMs, guests: made.guests },
    ...{ room, before, after },
  };
}

/** With its target. */
export interface Seated {
  readonly mover: Mover;
  readonly slot: number;
  readonly held: Parameters<Fleet['hold']>[1];
}

/** Other hosts that are emptied at the same time, and what leaves them. */
export interface Beside {
  readonly closed: readonly string[];
  readonly seated: readonly Seated[];
}

interface GuestsOfPlan {
  readonly hostId: string;
  readonly guests: PlannedGuest[];
  readonly seated: readonly Seated[];
}

/** The part of the plan that its hash is of. Throws `NotFound`. */
export function guestsOfPlan(
  snapshot: Snapshot,
  { verb, host, options }: PlanInput,
  beside: Beside = { closed: [], seated: [] },
): GuestsOfPlan & { hash: string } {
  const record = snapshot.get('host', keys.host(host))?.value;
  if (!record) throw new ApiError('NotFound', `there is no host "${host}"; "berth host ls" shows the hosts`);
  const hostId = record.metadata.id;
  const found = guestsOn(snapshot, { verb, host, options });
  const { moved, seated } = seatAll(snapshot, { host, options, beside }, found);
  const rest = found.filter(({ mover }) => !mover).map(({ guest }) => guest);
  const guests = [...moved, ...rest.toSorted(compareRest)];
  return { hostId, guests, seated, hash: planHash({ verb, hostId, options, guests }) };
}

const actionOrder: readonly PlannedGuest['action'][] = [
  'replace',
  'move',
  'restart',
  'ends',
  'stop',
  'rests',
  'fails',
  'stays',
];

function compareRest(a: PlannedGuest, b: PlannedGuest): number {
  return actionOrder.indexOf(a.action) - actionOrder.indexOf(b.action) || compareNames(a, b);
}

function compareNames(a: PlannedGuest, b: PlannedGuest): number {
  const [left, right] = [`${a.project}/${a.name}/${a.id}`, `${b.project}/${b.name}/${b.id}`];
  return left < right ? -1 : left > right ? 1 : 0;
}

interface Ranked {
  readonly found: Found;
  readonly mover: Mover;
  readonly fits: number;
}

/** Fewest hosts that fit first, then the largest: those that are hard to place choose first. */
function seatAll(
  snapshot: Snapshot,
  { host, options, beside }: Omit<PlanInput, 'verb'> & { readonly beside: Beside },
  all: readonly Found[],
) {
  const engine = engineOf(snapshot);
  const { fleet } = engine;
  return fleet.tentatively(() => {
    leave(fleet, host, all);
    for (const other of beside.closed) if (other !== host) leave(fleet, other, []);
    for (const { mover, slot, held } of beside.seated) hold(fleet, mover.request, slot, held, 1);
    const ranked: Ranked[] = all.flatMap((found) =>
      found.mover ? [{ found, mover: found.mover, fits: engine.fitCount(found.mover.request) }] : [],
    );
    ranked.sort(
      (a, b) =>
        Number(a.mover.last) - Number(b.mover.last) ||
        a.fits - b.fits ||
        sizeOf(b.mover.request) - sizeOf(a.mover.request) ||
        compareNames(a.found.guest, b.found.guest),
    );
    const seated: Seated[] = [];
    const moved = ranked.map(({ found: { guest }, mover }): PlannedGuest => {
      if (mover.last) return guest;
      const choice = engine.choose(mover.request);
      if (!choice) return withoutTarget(guest, mover, options, () => whyNowhere(snapshot, mover.request));
      const { held } = placementAt(fleet, mover.request, choice);
      hold(fleet, mover.request, choice.slot, held, 1);
      seated.push({ mover, slot: choice.slot, held });
      const target = fleet.names[choice.slot] ?? '';
      return { ...guest, target, targetId: fleet.hosts[choice.slot]?.metadata.id ?? '' };
    });
    return { moved, seated };
  });
}

function withoutTarget(
  guest: PlannedGuest,
  { elsewhere }: Mover,
  { stopOthers }: DrainOptions,
  why: () => string,
): PlannedGuest {
  const reasons = [...(guest.action === 'move' ? [] : guest.reasons), { code: 'NoHost', message: why() }];
  if (elsewhere === 'waits') return { ...guest, reasons }; // its host is gone: it waits for room
  return { ...guest, action: stopOthers ? 'stop' : 'stays', reasons };
}

function whyNowhere(snapshot: Snapshot, request: Request): string {
  const engine = engineOf(snapshot);
  return noOtherHost(engine.fleet.count - 1, refusalsOf(engine.countRefusals(request)));
}

/** In a trial: the host takes nothing, and what leaves it is no neighbour there. */
function leave(fleet: Fleet, host: string, all: readonly Found[]): void {
  const slot = fleet.slotOf(host);
  if (slot === undefined) return;
  for (const { mover } of all) if (mover) fleet.groups.try(slot, belongingOf(mover.instance), -1);
  fleet.setAside(slot);
}

/** The room of the other hosts once the plan is applied, and whether they then survive the loss of one. */
function afterwards(
  snapshot: Snapshot,
  {
    host,
    seated,
    requests,
  }: { readonly host: string; readonly seated: readonly Seated[]; readonly requests: RequestsByHost },
): { readonly room: HostPlan['room']; readonly after: Survival } {
  const { fleet } = engineOf(snapshot);
  return fleet.tentatively(() => {
    const slot = fleet.slotOf(host);
    if (slot !== undefined) fleet.setAside(slot);
    const to = new Map<string, Request[]>();
    for (const { mover, slot: target, held } of seated) {
      hold(fleet, mover.request, target, held, 1);
      const name = fleet.names[target] ?? '';
      const known = to.get(name);
      if (known) known.push(mover.request);
      else to.set(name, [mover.request]);
    }
    return { room: roomOf(fleet), after: finish(survivalOf(snapshot, { to, from: host }, requests)) };
  });
}

function roomOf(fleet: Fleet): HostPlan['room'] {
  const room: Record<string, { capacity: number; free: number }> = {};
  for (const column of fleet.columns()) {
    const sum = { capacity: 0, free: 0 };
    for (let slot = 0; slot < fleet.length; slot++) {
      if (!fleet.hosts[slot]) continue;
      sum.capacity += column.capacity(slot);
      sum.free += Math.max(0, column.capacity(slot) - column.used(slot));
    }
    if (sum.capacity > 0) room[column.resourceClass] = sum;
  }
  return room;
}

function sizeOf({ amounts }: Request): number {
  return (amounts['MEMORY_MB'] ?? 0) + 4_096 * (amounts['VCPU'] ?? 0);
}
