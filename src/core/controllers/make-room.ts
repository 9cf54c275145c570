// Make room: preemption and reservation for an instance that fits nowhere. Instances of lower priority are stopped, if its spec allows
// that; or, when it has been the head of its line for too long, a host is reserved for it. Both are recorded in its status, so that every
// control plane respects them.
//
//   waits ──fits nowhere, may preempt──▶ victims stop, nominated ──room is free──▶ placed
//     └────first for starvationMs─────▶ nominated ──nominationMs over──▶ waits, and again after starvationMs

import type { Instance } from '../../api/resources/instance.ts';
import { passGate } from '../queue/limits.ts';
import { preemptionFor } from '../queue/preemption.ts';
import { queueOf } from '../queue/queue.ts';
import { hostToReserve } from '../queue/starvation.ts';
import type { Request } from '../scheduler/request.ts';
import { withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import { instanceStatusChange } from '../state/instance-change.ts';
import { keys } from '../state/keys.ts';
import type { Change, Plan } from '../state/plan.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { unplacedStatus } from '../state/unplaced-status.ts';
import { wait } from './wait.ts';

const toldFirstMs = 1_000;

/** `message`: why it fits nowhere. */
export function waitForRoom(
  snapshot: Snapshot,
  instance: Entry<Instance>,
  { request, message }: { readonly request: Request; readonly message: string },
  ctx: Context,
): Plan {
  const { nomination } = instance.value.status;
  const unfit = { reason: 'Unschedulable', message } as const;
  if (nomination) {
    // Wall time may have jumped: at most the full period of a reservation.
    const leftMs = Math.min(nomination.untilMs - ctx.nowMs, ctx.policy.nominationMs);
    if (leftMs > 0 && snapshot.get('host', keys.host(nomination.host))) return { changes: [], requeueAfterMs: leftMs }; // already reported
    return { ...wait(instance, unfit, ctx, null), requeueAfterMs: 0 };
  }
  const preemption = preemptionFor(snapshot, instance.value, request);
  if (preemption) return preempt(snapshot, instance, preemption, ctx);
  const headSinceMs = queueOf(snapshot).headSinceMs(instance.key);
  if (headSinceMs === undefined) return wait(instance, unfit, ctx);
  const { starvationMs, nominationMs } = ctx.policy;
  const roundMs = Math.max(0, ctx.nowMs - headSinceMs) % (starvationMs + nominationMs);
  if (roundMs < starvationMs) return { ...wait(instance, unfit, ctx), requeueAfterMs: starvationMs - roundMs };
  const leftMs = starvationMs + nominationMs - roundMs;
  // First the instance's status says why it waits.
  const told = wait(instance, unfit, ctx);
  if (told.changes.length > 0) return { ...told, requeueAfterMs: toldFirstMs };
  const host = hostToReserve(snapshot, request);
  if (host === null) return { ...wait(instance, unfit, ctx), requeueAfterMs: leftMs };
  const kept = `${message}; ${host} is reserved for it, because it has waited long at the head of its queue`;
  return {
    ...wait(instance, { reason: 'MakingRoom', message: kept }, ctx, { host, untilMs: ctx.nowMs + leftMs }),
    requeueAfterMs: leftMs,
  };
}

function preempt(
  snapshot: Snapshot,
  instance: Entry<Instance>,
  { host, victims }: { readonly host: string; readonly victims: readonly Entry<Instance>[] },
  ctx: Context,
): Plan {
  const { project: own } = instance.value.metadata;
  const { nominationMs } = ctx.policy;
  const names = namesFor(own, victims);
  const message =
    victims.length === 0 ? `waits for resources that are being released on ${host}` : `preempts ${names} on ${host}`;
  const gates = new Set<string>();
  for (const { value } of victims) {
    const { project } = value.metadata;
    if (snapshot.get('project', keys.project(project))?.value.spec.guarantee !== undefined)
      gates.add(`guarantee/${project}`);
  }
  const kept = wait(instance, { reason: 'MakingRoom', message }, ctx, { host, untilMs: ctx.nowMs + nominationMs });
  return {
    changes: [
      ...kept.changes,
      ...victims.flatMap((victim) => stopFor(victim, { by: instance.value, host }, ctx)),
      ...[...gates].map((gate) => passGate(snapshot, gate)),
    ],
    requeueAfterMs: nominationMs,
  };
}

/** Owners of a project read this: names of other projects stay out of it. */
function namesFor(project: string, victims: readonly Entry<Instance>[]): string {
  const own = victims.filter(({ value }) => value.metadata.project === project);
  const others = victims.length - own.length;
  const names = own.map(({ value }) => value.metadata.name);
  if (others > 0)
    names.push(others === 1 ? 'one instance of another project' : `${others} instances of other projects`);
  return names.join(', ');
}

/**
 * Treated like a failure: its host stops and deletes the guest, which frees the room. The restart policy decides
 * whether it is placed again.
 */
function stopFor(victim: Entry<Instance>, { by, host }: { by: Instance; host: string }, ctx: Context): Change[] {
  const kept = unplacedStatus(victim.value.status);
  const own = by.metadata.project === victim.value.metadata.project;
  const who = own ? by.metadata.name : 'an instance of another project';
  const why = { reason: 'Preempted', message: `preempted on ${host} by ${who}, which has a higher priority` };
  return [
    instanceStatusChange(victim, {
      ...kept,
      phase: 'Failed',
      failedAtMs: ctx.nowMs,
      conditions: withConditions(
        kept.conditions,
        (['Scheduled', 'Running', 'Ready'] as const).map((type) => ({ type, status: 'False', ...why })),
        ctx.nowMs,
      ),
    }),
    eventChange(victim.value, { type: 'Warning', ...why, host }, ctx),
  ];
}
