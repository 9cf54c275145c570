// fence: orders a host that is down to be powered off when an exclusive instance waits for the proof that this gives.
// It writes the order; the leader's hooks carry it out (server/fencing/). A failed one is ordered again, ever later.

import type { Host } from '../../../api/resources/host.ts';
import type { HostDown } from '../../../api/resources/host-state.ts';
import { backoffMs } from '../../../base/backoff.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { onHostLossOf, proofFor } from '../../state/host-loss.ts';
import { keys } from '../../state/keys.ts';
import { emptyPlan, type Plan } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { type Controller, keysOfKind } from '../controller.ts';
import { isLost } from './host-loss.ts';
import { instancesOn } from './lost-host.ts';

export const fence: Controller = {
  name: 'fence',
  watches: ['host', 'instance'],
  wakes({ key, after }, snapshot) {
    if (after?.kind === 'host') return after.status.down ? [key] : [];
    if (after?.kind !== 'instance' || after.status.host === undefined || !isLost(after)) return [];
    const host = keys.host(after.status.host);
    return snapshot.get('host', host)?.value.status.down ? [host] : [];
  },
  keys: (snapshot) => keysOfKind(snapshot, 'host'),
  reconcile(snapshot, key, ctx) {
    const host = snapshot.get('host', key);
    const down = host?.value.status.down;
    if (!host || !down || ctx.policy.fencing !== true) return emptyPlan;
    if (down.fence?.state === 'ordered' || down.fence?.state === 'done') return emptyPlan;
    if (!waitsForProof(snapshot, host.value, down)) return emptyPlan;
    const waitMs = Math.max(heldMs(down, ctx), retryMs(down, ctx));
    return waitMs > 0 ? { changes: [], requeueAfterMs: Math.min(waitMs, lookMs) } : order(host, down, ctx);
  },
};

/** The clock of another leader may be ahead. */
const lookMs = 10_000;
const retry = { delayMsMin: 5_000, delayMsMax: 300_000 };

function heldMs({ heldUntilMs = 0 }: HostDown, { nowMs }: Context): number {
  return heldUntilMs - nowMs;
}

function retryMs({ fence: last }: HostDown, { nowMs, prng }: Context): number {
  return last === undefined ? 0 : last.atMs + backoffMs(last.attempt, retry, prng) - nowMs;
}

function waitsForProof(snapshot: Snapshot, host: Host, down: HostDown): boolean {
  for (const key of instancesOn(snapshot, host.metadata.name)) {
    const instance = snapshot.get('instance', key)?.value;
    if (instance?.spec.exclusive !== true || instance.status.host !== host.metadata.name || !isLost(instance)) continue;
    if (onHostLossOf(snapshot, instance) === 'replace' && !proofFor(instance, down)) return true;
  }
  return false;
}

function order(host: Entry<Host>, down: HostDown, ctx: Context): Plan {
  const { value } = host;
  const attempt = (down.fence?.attempt ?? 0) + 1;
  const message = `is to be powered off, because exclusive instances wait for a proof (attempt ${attempt})`;
  const ordered: HostDown = { ...down, fence: { attempt, atMs: ctx.nowMs, state: 'ordered', message } };
  return {
    changes: [
      { key: host.key, ifRevision: host.revision, value: { ...value, status: { ...value.status, down: ordered } } },
      eventChange(value, { type: 'Warning', reason: 'Fencing', message, host: value.metadata.name }, ctx),
    ],
    conditions: [{ key: keys.lease(value.metadata.name), ifRevision: 0 }],
  };
}
