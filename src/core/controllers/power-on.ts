// power-on: a stopped instance that should run again gets its room back on the host that has its disk, or waits there with the
// reason. Its host starts it only then: room that was given back may have been taken by others (S4.7).

import type { Instance } from '../../api/resources/instance.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import { claimAgain, fit, holdsOnlyDisk, rootProviderOf } from '../ledger/ledger.ts';
import { describeFit } from '../scheduler/plugins/fit.ts';
import { conditionOf, withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import { instanceStatusChange } from '../state/instance-change.ts';
import { keys } from '../state/keys.ts';
import { emptyPlan, type Plan } from '../state/plan.ts';
import type { Allocation } from '../state/records.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { type Controller, keysOfKind } from './controller.ts';

export const powerOn: Controller = {
  name: 'power-on',
  *wakes({ key, kind, before, after }, snapshot) {
    if (kind === 'instance' && after) yield key;
    const host = before?.kind === 'allocation' ? before.host : after?.kind === 'provider' ? after.host : undefined;
    if (host === undefined) return;
    for (const { value } of snapshot.allocationsOnHost(host)) {
      if (holdsOnlyDisk(value)) yield keys.instance(value.consumer.project, value.consumer.name);
    }
  },
  keys: (snapshot) => keysOfKind(snapshot, 'instance'),
  reconcile(snapshot, key, ctx) {
    const instance = snapshot.get('instance', key);
    if (!instance || !shouldRunAgain(instance.value)) return emptyPlan;
    const { metadata, status } = instance.value;
    const allocation = snapshot.get('allocation', keys.allocation(metadata.id, status.incarnation));
    if (!allocation || !holdsOnlyDisk(allocation.value)) return emptyPlan;
    return takeRoom(snapshot, instance, allocation, ctx);
  },
};

function shouldRunAgain({ metadata, spec, status }: Instance): boolean {
  return (
    status.phase === 'Stopped' &&
    status.host !== undefined &&
    spec.powerState === 'running' &&
    metadata.deletionRequestedAtMs === undefined
  );
}

function takeRoom(snapshot: Snapshot, instance: Entry<Instance>, allocation: Entry<Allocation>, ctx: Context): Plan {
  const { status } = instance.value;
  const host = status.host ?? '';
  const provider = rootProviderOf(snapshot, host);
  const amounts = status.assigned ?? {};
  if (!provider) return emptyPlan; // the host is gone: controllers/lost-host.ts
  const verdict = fit(provider.value, snapshot.usedBy(provider.value.id), withoutDisk(amounts));
  const condition = verdict.fits
    ? ({ status: 'True', reason: 'Placed', message: `has its room on ${host} again` } as const)
    : ({
        status: 'False',
        reason: 'Unschedulable',
        message: `its disk is on ${host}, where there is no room for it to run: ${describeFit(verdict).message}`,
      } as const);
  const known = conditionOf(status.conditions, 'Scheduled');
  const told = known?.status === condition.status && (verdict.fits || known.message === condition.message);
  if (told && !verdict.fits) return emptyPlan;
  return {
    changes: [
      instanceStatusChange(instance, {
        ...status,
        conditions: withConditions(status.conditions, [{ type: 'Scheduled', ...condition }], ctx.nowMs),
      }),
      ...(verdict.fits ? claimAgain(provider, allocation, amounts) : []),
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

/** The disk is held all the time. */
function withoutDisk(amounts: Amounts): Amounts {
  const { DISK_GB: _disk, ...rest } = amounts;
  return rest;
}
