// garbage: deletes what is no longer needed: deleted instances of which no host holds anything, allocations on removed
// hosts, events and idempotency records that are too old or too many, and ID tokens that have expired.

import type { Instance } from '../../api/resources/instance.ts';
import { release } from '../ledger/ledger.ts';
import { isOutsideGroup } from '../ledger/outside-group.ts';
import { dischargeQuota } from '../queue/quotas.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import { keys, kindOfKey, prefixOf } from '../state/keys.ts';
import { type Change, emptyPlan, type Plan } from '../state/plan.ts';
import type { writtenOnce } from '../state/records.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { type Controller, keysOfKind } from './controller.ts';

export const garbage: Controller = {
  name: 'garbage',
  watches: ['instance', 'allocation', 'host'],
  wakes({ key, kind, before, after }, snapshot) {
    if (kind === 'instance') {
      const deleting = after?.kind === 'instance' && after.metadata.deletionRequestedAtMs !== undefined;
      return [...(deleting ? [key] : []), ...manyOf(snapshot)];
    }
    if (kind === 'host')
      return before?.kind === 'host' && !after
        ? Array.from(snapshot.allocationsOnHost(before.metadata.name), ({ key: held }) => held)
        : [];
    if (after?.kind === 'allocation' && isOutsideGroup(after.host)) return [];
    if (after?.kind === 'allocation') return snapshot.get('host', keys.host(after.host)) ? [] : [key];
    return before?.kind === 'allocation' && before.consumer.kind === undefined
      ? [keys.instance(before.consumer.project, before.consumer.name)]
      : [];
  },
  *keys(snapshot) {
    for (const kind of ['instance', 'allocation', 'event', 'idempotency', 'spentIdToken'] as const)
      yield* keysOfKind(snapshot, kind);
    yield* surplusKeys;
  },
  reconcile(snapshot, key, ctx) {
    switch (kindOfKey(key)) {
      case 'instance':
        return finishDeletion(snapshot, key, ctx);
      case 'allocation':
        return releaseOfRemovedHost(snapshot, key);
      case 'event': {
        if (key === surplusOf.event) return removeSurplus(snapshot, 'event', ctx.policy.eventsMax);
        const event = snapshot.get('event', key);
        return event
          ? expire(event.key, event.revision, event.value.metadata.createdAtMs + ctx.policy.eventsKeptMs, ctx)
          : emptyPlan;
      }
      case 'idempotency': {
        if (key === surplusOf.idempotency) return removeSurplus(snapshot, 'idempotency', ctx.policy.idempotencyMax);
        const record = snapshot.get('idempotency', key);
        return record
          ? expire(record.key, record.revision, record.value.createdAtMs + ctx.policy.idempotencyKeptMs, ctx)
          : emptyPlan;
      }
      case 'spentIdToken': {
        const record = snapshot.get('spentIdToken', key);
        return record ? expire(record.key, record.revision, record.value.untilMs, ctx) : emptyPlan;
      }
      default:
        return emptyPlan;
    }
  },
};

// Old events and records wait for the periodic full pass: a timer for each would cost more than it frees. Their number
// is checked once per pass, under a key that belongs to no record; when there are many, also whenever an instance
// changes: 200 creates a second write 40,000 events within a pass.

type Counted = (typeof writtenOnce)[number];
const surplusOf: Readonly<Record<Counted, string>> = { event: prefixOf('event'), idempotency: prefixOf('idempotency') };
const surplusKeys = Object.values(surplusOf);
/** Above this number a limit may be exceeded by what one write deletes: less than a twentieth. */
const many = 10_000;

function manyOf(snapshot: Snapshot): string[] {
  const keys: string[] = [];
  if (snapshot.count('event') > many) keys.push(surplusOf.event);
  if (snapshot.count('idempotency') > many) keys.push(surplusOf.idempotency);
  return keys;
}

/** As many as the committer joins in one durable write; the rest follows immediately. */
const removedAtOnceMax = 512;

/** Deletes the oldest of a kind beyond `max`. */
function removeSurplus(snapshot: Snapshot, kind: Counted, max: number): Plan {
  const surplus = snapshot.count(kind) - max;
  if (surplus <= 0 || (max >= many && surplus < removedAtOnceMax)) return emptyPlan;
  const changes: Change[] = [];
  for (const { key, revision } of snapshot.list(kind)) {
    if (changes.length === Math.min(surplus, removedAtOnceMax)) break;
    changes.push({ key, ifRevision: revision, value: null });
  }
  return surplus > removedAtOnceMax ? { changes, requeueAfterMs: 0 } : { changes };
}

/** An instance is deleted when no host may hold anything of any of its incarnations. */
function finishDeletion(snapshot: Snapshot, key: string, ctx: Context): Plan {
  const instance = snapshot.get('instance', key);
  if (!instance || instance.value.metadata.deletionRequestedAtMs === undefined) return emptyPlan;
  if (snapshot.allocationsOfConsumer(instance.value.metadata.id).length > 0) return emptyPlan;
  return {
    // A release may be in progress and still fail: then this Plan fails as well.
    conditions: allocationsGone(instance.value),
    changes: [
      { key, ifRevision: instance.revision, value: null },
      ...dischargeQuota(snapshot, instance.value),
      eventChange(instance.value, { reason: 'Deleted', message: 'removed completely' }, ctx),
    ],
  };
}

/** The maximum number of incarnations to wait for at once. */
const livesMax = 16;

function allocationsGone({ metadata, status }: Instance): NonNullable<Plan['conditions']> {
  const conditions: { key: string; ifRevision: number }[] = [];
  for (let life = status.incarnation; life > Math.max(0, status.incarnation - livesMax); life--)
    conditions.push({ key: keys.allocation(metadata.id, life), ifRevision: 0 });
  return conditions;
}

function releaseOfRemovedHost(snapshot: Snapshot, key: string): Plan {
  const allocation = snapshot.get('allocation', key);
  if (!allocation) return emptyPlan;
  const hostKey = keys.host(allocation.value.host);
  if (isOutsideGroup(allocation.value.host)) return emptyPlan;
  if (snapshot.get('host', hostKey)) return emptyPlan;
  return { changes: release(allocation), conditions: [{ key: hostKey, ifRevision: 0 }] };
}

function expire(key: string, revision: number, atMs: number, ctx: Context): Plan {
  return ctx.nowMs >= atMs ? { changes: [{ key, ifRevision: revision, value: null }] } : emptyPlan;
}
