// power-on: a stopped instance that should run again claims its room on the host that has its disk, or waits there with
// the reason. Its host starts it only after that: released room may have been taken by others (S4.7).

import { type Instance, isToBeOn } from '../../api/resources/instance.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import { claimAgain, type Held, holdsOnlyDisk, type Shortfall } from '../ledger/ledger.ts';
import { assign, type Portion } from '../ledger/tree.ts';
import { gateOf, limitsOn, passGates } from '../queue/limits.ts';
import { limitReached } from '../queue/queue.ts';
import { cpuAdvice } from '../explain/cpu-advice.ts';
import { fleetOf } from '../scheduler/fleet.ts';
import { describeFits } from '../scheduler/plugins/fit.ts';
import { requestOf } from '../scheduler/request.ts';
import { conditionOf, withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import { instanceStatusChange } from '../state/instance-change.ts';
import { keys } from '../state/keys.ts';
import { emptyPlan, type Plan } from '../state/plan.ts';
import type { Allocation } from '../state/records.ts';
import type { Entry, RecordChange, Snapshot } from '../state/snapshot.ts';
import { type Controller, keysOfKind } from './controller.ts';
import { sameReasons, wait } from './wait.ts';

export const powerOn: Controller = {
  name: 'power-on',
  watches: ['instance', 'allocation', 'provider'],
  wakes({ key, kind, before, after }, snapshot) {
    if (kind === 'instance') return after?.kind === 'instance' && shouldRunAgain(after) ? [key] : [];
    const host = before?.kind === 'allocation' ? before.host : hostWithOtherRoom({ before, after });
    return host === undefined ? [] : stoppedOn(snapshot, host);
  },
  keys: (snapshot) => keysOfKind(snapshot, 'instance'),
  reconcile(snapshot, key, ctx) {
    const instance = snapshot.get('instance', key);
    if (!instance || !shouldRunAgain(instance.value)) return emptyPlan;
    const { metadata, status } = instance.value;
    const allocation = snapshot.get('allocation', keys.allocation(metadata.id, status.incarnation));
    if (!allocation || !holdsOnlyDisk(allocation.value)) return emptyPlan;
    const limits = limitsOn(snapshot, ctx.policy, instance.value);
    const reached = limitReached(snapshot, limits);
    if (reached) return { ...wait(instance, reached, ctx), requeueAfterMs: limitedRetryMs };
    const plan = takeRoom(snapshot, instance, allocation, ctx);
    const claims = plan.changes.some(({ key: changed }) => changed === allocation.key);
    return claims ? { ...plan, changes: [...plan.changes, ...passGates(snapshot, limits.map(gateOf))] } : plan;
  },
};

/** Instances for which the host holds only the disk. */
function* stoppedOn(snapshot: Snapshot, host: string): Iterable<string> {
  for (const { value } of snapshot.allocationsOnHost(host)) {
    if (value.consumer.kind === undefined && holdsOnlyDisk(value))
      yield keys.instance(value.consumer.project, value.consumer.name);
  }
}

/** Stopped instances are not in the queue, so they check a limit again after this time. */
const limitedRetryMs = 5_000;

/** Claims rewrite a provider too, but only take room. */
function hostWithOtherRoom({ before, after }: Pick<RecordChange, 'before' | 'after'>): string | undefined {
  if (after?.kind !== 'provider') return undefined;
  return before?.kind === 'provider' && before.inventories === after.inventories ? undefined : after.host;
}

function shouldRunAgain({ metadata, spec, status }: Instance): boolean {
  return (
    status.phase === 'Stopped' &&
    status.host !== undefined &&
    isToBeOn(spec) &&
    metadata.deletionRequestedAtMs === undefined
  );
}

function takeRoom(snapshot: Snapshot, instance: Entry<Instance>, allocation: Entry<Allocation>, ctx: Context): Plan {
  const { status } = instance.value;
  const host = status.host ?? '';
  const fleet = fleetOf(snapshot);
  const slot = fleet.slotOf(host);
  const tree = slot === undefined ? [] : fleet.tree(slot);
  if (tree.length === 0) return emptyPlan; // the host was removed: controllers/hosts/lost-host.ts
  const request = requestOf(snapshot, instance.value);
  const verdict = assign(tree, { ...request, amounts: plainOf(status.assigned ?? {}, request.portions) });
  const condition = verdict.fits
    ? ({ status: 'True', reason: 'Placed', message: `has its resources on ${host} again` } as const)
    : ({
        status: 'False',
        reason: 'Unschedulable',
        message: `its disk is on ${host}, where there is no room for it to run: ${describeFits(verdict.shortfalls)}${adviceFor(verdict.shortfalls, host)}`,
      } as const);
  const known = conditionOf(status.conditions, 'Scheduled');
  const told = known?.status === condition.status && (verdict.fits || sameShortage(known.message, condition.message));
  if (told && !verdict.fits) return emptyPlan;
  return {
    changes: [
      instanceStatusChange(instance, {
        ...status,
        conditions: withConditions(status.conditions, [{ type: 'Scheduled', ...condition }], ctx.nowMs),
      }),
      ...(verdict.fits ? claimAgain(snapshot, allocation, merged(allocation.value.amounts, verdict.held)) : []),
      ...(told
        ? []
        : [
            eventChange(
              instance.value,
              { type: verdict.fits ? 'Normal' : 'Warning', reason: condition.reason, message: condition.message, host },
              ctx,
            ),
          ]),
    ],
  };
}

/** Only the numbers differ: others come and go on this host, and each time they change. */
function sameShortage(a: string, b: string): boolean {
  return sameReasons(a, b) || a.replaceAll(/\d+/g, '#') === b.replaceAll(/\d+/g, '#');
}

function adviceFor(shortfalls: readonly Shortfall[], host: string): string {
  const short = shortfalls.some(({ resourceClass, refusal }) => resourceClass === 'VCPU' && refusal === 'Insufficient');
  return short ? `; ${cpuAdvice(host)}` : '';
}

/** The part assigned as plain amounts, without the disk, which is always held. */
function plainOf(assigned: Amounts, portions: readonly Portion[]): Amounts {
  const { DISK_GB: _disk, ...rest } = assigned;
  const plain: Record<string, number> = rest;
  for (const { amounts, count } of portions) {
    for (const resourceClass in amounts)
      plain[resourceClass] = Math.max(0, (plain[resourceClass] ?? 0) - count * (amounts[resourceClass] ?? 0));
  }
  return plain;
}

function merged(a: Held, b: Held): Held {
  const sum: Record<string, Amounts> = { ...a };
  for (const [providerId, amounts] of Object.entries(b)) sum[providerId] = { ...sum[providerId], ...amounts };
  return sum;
}
