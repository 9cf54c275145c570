// Giving up a host that never returns: its plan, and its removal by the hash of the plan. What ran there is started elsewhere or lost, as
// the plan says for each.

import { ApiError } from '../../../api/errors.ts';
import type { DrainOptions, HostPlan } from '../../../api/plans/host-plan.ts';
import { guestsOfPlan, planHost } from '../../plans/drain.ts';
import { isReady } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Plan } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { deleteHost } from '../host.ts';
import { existing } from '../replace.ts';
import { assertPlan, remembered } from './host-drain.ts';

/** An evacuation has none; a drain of the same host has. */
const options: DrainOptions = { stopOthers: false, movesMax: 1, deadlineMs: 1_000, atDeadline: 'leave' };

export function showEvacuation(
  snapshot: Snapshot,
  host: string,
  ctx: Context,
): { readonly plan: Plan; readonly shown: HostPlan } {
  assertGone(snapshot, host);
  const shown = planHost(snapshot, { verb: 'evacuate', host, options }, ctx);
  return { plan: { changes: remembered(snapshot, shown, ctx) }, shown };
}

/** Throws `Conflict` when the hash is of another plan. */
export function evacuate(
  snapshot: Snapshot,
  { host, hash }: { readonly host: string; readonly hash: string },
  ctx: Context,
): { readonly plan: Plan } {
  assertGone(snapshot, host);
  const now = guestsOfPlan(snapshot, { verb: 'evacuate', host, options });
  const known = snapshot.get('hostPlan', keys.hostPlan(host));
  assertPlan(known?.value, { host, hash, options, now }, ctx);
  const { plan } = deleteHost(snapshot, { name: host, force: true }, ctx);
  return {
    plan: {
      ...plan,
      changes: [...plan.changes, ...(known ? [{ key: known.key, ifRevision: known.revision, value: null }] : [])],
    },
  };
}

/** Throws `Conflict` for a host that runs: its guests would keep running, and start a second time elsewhere. */
function assertGone(snapshot: Snapshot, host: string): void {
  const { value } = existing(snapshot, 'host', keys.host(host));
  if (!isReady(value.status)) return;
  throw new ApiError('Conflict', `host "${host}" is connected; "berth host drain ${host}" empties it`);
}
