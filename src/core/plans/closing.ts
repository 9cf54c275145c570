// Closing a host for placement while it is drained, and opening it again. It is a condition of the host: other reasons to be closed stay.

import type { Host } from '../../api/resources/host.ts';
import { withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import type { Change } from '../state/plan.ts';
import { withState } from '../state/host-state-change.ts';
import type { Entry } from '../state/snapshot.ts';

export function hostClosed(entry: Entry<Host>, message: string, ctx: Context): Change {
  return withDraining(entry, { status: 'True', reason: 'Draining', message }, ctx);
}

export function hostOpened(entry: Entry<Host>, message: string, ctx: Context): Change {
  return withDraining(entry, { status: 'False', reason: 'Opened', message }, ctx);
}

function withDraining(
  { key, revision, value }: Entry<Host>,
  draining: { readonly status: 'True' | 'False'; readonly reason: string; readonly message: string },
  ctx: Context,
): Change {
  const conditions = withConditions(value.status.conditions, [{ type: 'Draining', ...draining }], ctx.nowMs);
  const host = withState({ ...value, status: { ...value.status, conditions } }, ctx.nowMs);
  return { key, ifRevision: revision, value: host };
}
