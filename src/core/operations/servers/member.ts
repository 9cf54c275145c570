// The control planes of a store, with the addresses that they advertise: clients learn the others from the one they know. It
// never says which one leads or is alive.

import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import { type Change, emptyPlan, type Plan } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { recordsVersion } from '../../state/upgrade.ts';

/** A member announces itself once a day; without an announcement for a week it is removed. */
export const announceEveryMs = 86_400_000;
const forgottenAfterMs = 7 * announceEveryMs;

/** Announces a member, and removes expired ones. Changes nothing when the last announcement is recent. */
export function announceMember(
  snapshot: Snapshot,
  { name, url, version }: { readonly name: string; readonly url: string | undefined; readonly version: string },
  ctx: Context,
): { readonly plan: Plan } {
  const key = keys.member(name);
  const entry = snapshot.get('member', key);
  const changes: Change[] = [];
  const known = entry?.value;
  const isSame =
    known !== undefined && known.url === url && known.version === version && known.recordsVersion === recordsVersion;
  if (!isSame || ctx.nowMs - known.announcedAtMs >= announceEveryMs / 2)
    changes.push({
      key,
      ifRevision: entry?.revision ?? 0,
      value: {
        kind: 'member',
        name,
        ...(url === undefined ? {} : { url }),
        version,
        recordsVersion,
        announcedAtMs: ctx.nowMs,
      },
    });
  for (const other of snapshot.list('member')) {
    const isGone = ctx.nowMs - other.value.announcedAtMs >= forgottenAfterMs;
    if (other.key !== key && isGone) changes.push({ key: other.key, ifRevision: other.revision, value: null });
  }
  return { plan: changes.length === 0 ? emptyPlan : { changes } };
}

/** For a control plane that stops in good order. */
export function withdrawMember(snapshot: Snapshot, name: string): { readonly plan: Plan } {
  const key = keys.member(name);
  const entry = snapshot.get('member', key);
  return { plan: entry ? { changes: [{ key, ifRevision: entry.revision, value: null }] } : emptyPlan };
}
