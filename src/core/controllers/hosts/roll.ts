// roll: carries out the maintenance of several hosts, group by group, one commit a step. Its record says what has begun, so a crash or another
// leader continues there. The first failure stops it: no other host begins until a person resumes it.
//
//   each host:  waiting ─▶ draining ──empty──▶ maintenance ──another boot id, and Ready──▶ restoring ──back──▶ done
//                  └──────────┴───────────────────┴──── it cannot, or its deadline ───────────┴──▶ failed
//
// A group begins when all hosts of the groups before it are done, and is planned again then: it must still be possible to empty all of it.

import type { RollingHost } from '../../../api/plans/host-roll.ts';
import type { Host } from '../../../api/resources/host.ts';
import { startedDrain } from '../../operations/plans/host-drain.ts';
import { startedRestore } from '../../operations/plans/host-restore.ts';
import { startedAgain } from '../../operations/plans/started-again.ts';
import { hostOpened } from '../../plans/closing.ts';
import { planRestore } from '../../plans/restore.ts';
import { drainOptionsOf, planGroup } from '../../plans/roll.ts';
import { isDraining, isReady } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import { type Change, emptyPlan, type Plan } from '../../state/plan.ts';
import type { HostRollRecord } from '../../state/records.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { type Controller, sleepMsMax } from '../controller.ts';

export const roll: Controller = {
  name: 'roll',
  watches: ['hostRoll', 'hostPlan', 'hostRestore', 'host'],
  wakes: ({ kind, before, after }, snapshot) => {
    const record = after ?? before;
    const known = snapshot.get('hostRoll', keys.hostRoll)?.value;
    if (known === undefined || record === undefined || known.endedAtMs !== undefined) return [];
    if (kind === 'hostRoll') return [keys.hostRoll];
    const host =
      record?.kind === 'host'
        ? record.metadata.name
        : record?.kind === 'hostPlan' || record?.kind === 'hostRestore'
          ? record.host
          : undefined;
    return known.hosts.some((each) => each.host === host) ? [keys.hostRoll] : [];
  },
  keys: (snapshot) => (snapshot.get('hostRoll', keys.hostRoll) ? [keys.hostRoll] : []),
  reconcile(snapshot, key, ctx) {
    const entry = snapshot.get('hostRoll', key);
    if (!entry || entry.value.endedAtMs !== undefined) return emptyPlan;
    return step(snapshot, entry, ctx);
  },
};

/** The first host for which something is due, or the whole next group. */
function step(snapshot: Snapshot, entry: Entry<HostRollRecord>, ctx: Context): Plan {
  const { value } = entry;
  if (value.hosts.every((host) => host.step === 'done')) return done(entry, ctx);
  let wakeMs = sleepMsMax;
  for (const host of value.hosts) {
    const next = nextOf(snapshot, value, host, ctx);
    if (next === undefined) continue;
    if ('host' in next) return changed(snapshot, entry, [next], ctx);
    wakeMs = Math.min(wakeMs, Math.max(1, next.wakeMs));
  }
  const current = value.hosts.find((host) => host.step !== 'done');
  const group = value.hosts.filter((host) => host.group === current?.group && host.step === 'waiting');
  if (value.phase === 'Rolling' && group.length > 0)
    return changed(snapshot, entry, begun(snapshot, value, group, ctx), ctx);
  return { changes: [], requeueAfterMs: wakeMs };
}

/** A host as it is after a step, and what else is written with it. */
interface Stepped {
  readonly host: RollingHost;
  readonly changes: readonly Change[];
}

type Next = Stepped | { readonly wakeMs: number };

function nextOf(snapshot: Snapshot, roll: HostRollRecord, rolling: RollingHost, ctx: Context): Next | undefined {
  const { step: at } = rolling;
  if (at !== 'draining' && at !== 'maintenance' && at !== 'restoring') return undefined;
  const entry = snapshot.get('host', keys.host(rolling.host));
  if (entry?.value.metadata.id !== rolling.hostId) return failed(rolling, 'the host was removed');
  const there = { roll, rolling, entry };
  return at === 'draining'
    ? drained(snapshot, there, ctx)
    : at === 'maintenance'
      ? maintained(snapshot, there, ctx)
      : restored(snapshot, there, ctx);
}

function failed(host: RollingHost, message: string): Stepped {
  const { step: at } = host;
  const failedIn =
    at === 'waiting' || at === 'draining' || at === 'maintenance' || at === 'restoring' ? { failedIn: at } : {};
  return { host: { ...host, ...failedIn, step: 'failed', message }, changes: [] };
}

/** All of a group in one commit: what leaves one of its hosts goes to no other. */
function begun(
  snapshot: Snapshot,
  roll: HostRollRecord,
  group: readonly RollingHost[],
  ctx: Context,
): readonly Stepped[] {
  for (const each of group) {
    const host = snapshot.get('host', keys.host(each.host))?.value;
    const why = whyNot(snapshot, host, each);
    if (why !== undefined) return [failed(each, why)];
  }
  const { guests, misfits } = planGroup(
    snapshot,
    group.map(({ host }) => host),
    roll.options,
  );
  const [misfit] = misfits;
  const stuck = group.find(({ host }) => misfit !== undefined && guests.get(host)?.includes(misfit));
  if (misfit && stuck) {
    const more = misfits.length > 1 ? `, and ${misfits.length - 1} more` : '';
    const why = misfit.reasons.map(({ message }) => message).join('; ');
    return [failed(stuck, `it cannot be emptied now: ${misfit.kind} ${misfit.name}: ${why}${more}`)];
  }
  const options = drainOptionsOf(roll.options);
  return group.map((each): Stepped => {
    const { host, hostId } = each;
    const started = startedDrain(
      snapshot,
      { host, hostId, hash: roll.hash, options, guests: guests.get(host) ?? [] },
      ctx,
    );
    return { host: { ...each, step: 'draining', sinceMs: ctx.nowMs }, changes: started.changes };
  });
}

function whyNot(snapshot: Snapshot, host: Host | undefined, { hostId }: RollingHost): string | undefined {
  if (host?.metadata.id !== hostId) return 'the host was removed';
  const { phase } = snapshot.get('hostPlan', keys.hostPlan(host.metadata.name))?.value ?? {};
  if (phase === 'Draining') return 'it is drained by another plan';
  return isReady(host.status) ? undefined : 'its agent is not ready';
}

function drained(snapshot: Snapshot, { roll, rolling, entry }: At, ctx: Context): Next {
  const host = entry.value;
  const drain = snapshot.get('hostPlan', keys.hostPlan(rolling.host))?.value;
  if (drain?.hash !== roll.hash || drain.hostId !== rolling.hostId) return failed(rolling, 'its drain is gone');
  switch (drain.phase) {
    case 'Draining':
      return { wakeMs: sleepMsMax };
    case 'Drained': {
      const { bootId } = host.status;
      const order = rolling.byCommand ? { order: ctx.newId('order') } : {};
      const message = rolling.byCommand ? 'its agent runs its maintenance command' : 'it is empty: reboot it';
      const next = { ...rolling, ...order, ...(bootId === undefined ? {} : { bootId }), message };
      const news = { reason: 'Maintenance', message, host: rolling.host };
      return { host: { ...next, step: 'maintenance', sinceMs: ctx.nowMs }, changes: [eventChange(host, news, ctx)] };
    }
    default: {
      const left = drain.guests.filter(({ progress }) => progress !== 'done');
      const first = left[0];
      const why =
        first === undefined ? '' : `: ${first.name}: ${first.message ?? first.reasons[0]?.message ?? first.progress}`;
      return failed(rolling, `its drain is ${drain.phase}, ${left.length} still here${why}`);
    }
  }
}

interface At {
  readonly roll: HostRollRecord;
  readonly rolling: RollingHost;
  readonly entry: Entry<Host>;
}

/** It has booted again when its agent is back with another boot id. */
function maintained(snapshot: Snapshot, { roll, rolling, entry }: At, ctx: Context): Next {
  const { status } = entry.value;
  const { message: _, ...kept } = rolling;
  const report = status.maintenance?.id === rolling.order ? status.maintenance : undefined;
  if (status.bootId !== rolling.bootId && isReady(status)) {
    const drain = snapshot.get('hostPlan', keys.hostPlan(rolling.host))?.value;
    const opened = isDraining(entry.value) ? [hostOpened(entry, 'its maintenance is over', ctx)] : [];
    return {
      host: { ...kept, step: 'restoring', sinceMs: ctx.nowMs },
      changes: [...opened, ...(drain ? startedAgain(snapshot, drain, ctx) : [])],
    };
  }
  if (!isDraining(entry.value)) return failed(rolling, 'it was opened before it had booted again');
  if (report?.state === 'failed') return failed(rolling, `its maintenance command has failed: ${report.message ?? ''}`);
  const leftMs = (rolling.sinceMs ?? 0) + roll.options.bootDeadlineMs - ctx.nowMs;
  return leftMs > 0 ? { wakeMs: leftMs } : failed(rolling, 'it has not come back with another boot id in time');
}

function restored(snapshot: Snapshot, { roll, rolling, entry }: At, ctx: Context): Next {
  const { host, hostId } = rolling;
  const finished = (message?: string): Stepped => ({
    host: { ...rolling, step: 'done', sinceMs: ctx.nowMs, ...(message === undefined ? {} : { message }) },
    changes: [eventChange(entry.value, { reason: 'MaintenanceDone', message: message ?? 'it is back', host }, ctx)],
  });
  if (!roll.options.restore) return finished();
  if (rolling.restoreHash === undefined) {
    const options = { movesMax: roll.options.movesMax, deadlineMs: roll.options.drainDeadlineMs };
    const plan = planRestore(snapshot, { host, hostId, options }, ctx);
    const stay = plan.guests.filter(({ action }) => action === 'stays').length;
    if (plan.guests.length === stay) return finished(stay === 0 ? undefined : `${stay} cannot return`);
    if (isDraining(entry.value)) return failed(rolling, 'it was drained again');
    const started = startedRestore(snapshot, plan, ctx);
    return { host: { ...rolling, restoreHash: plan.hash, sinceMs: ctx.nowMs }, changes: started.changes };
  }
  const restore = snapshot.get('hostRestore', keys.hostRestore(host))?.value;
  if (restore?.hash !== rolling.restoreHash) return failed(rolling, 'its restore is gone');
  if (restore.phase === 'Restoring') return { wakeMs: sleepMsMax };
  const lost = restore.guests.find(({ action, progress }) => action === 'move' && progress !== 'done');
  if (lost) return failed(rolling, `its restore is ${restore.phase}: ${lost.name}: ${lost.message ?? lost.progress}`);
  const stay = restore.guests.filter(({ action }) => action === 'stays').length;
  return finished(stay === 0 ? undefined : `${stay} cannot return`);
}

function changed(snapshot: Snapshot, entry: Entry<HostRollRecord>, stepped: readonly Stepped[], ctx: Context): Plan {
  const { key, revision, value } = entry;
  const news = stepped.find(({ host }) => host.step === 'failed')?.host;
  const hosts = value.hosts.map((host) => stepped.find((next) => next.host.host === host.host)?.host ?? host);
  const record = news && snapshot.get('host', keys.host(news.host))?.value;
  const warning = { type: 'Warning' as const, reason: 'RollFailed', message: news?.message ?? '' };
  return {
    changes: [
      { key, ifRevision: revision, value: { ...value, hosts, ...(news ? { phase: 'Failed' as const } : {}) } },
      ...stepped.flatMap(({ changes }) => changes),
      ...(news && record ? [eventChange(record, { ...warning, host: news.host }, ctx)] : []),
    ],
  };
}

function done({ key, revision, value }: Entry<HostRollRecord>, ctx: Context): Plan {
  return { changes: [{ key, ifRevision: revision, value: { ...value, phase: 'Done', endedAtMs: ctx.nowMs } }] };
}
