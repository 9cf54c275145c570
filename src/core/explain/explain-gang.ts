// Why a gang is not placed, computed now instead of repeated from its status: members are missing, or not all of them
// fit at once.

import type { Instance } from '../../api/resources/instance.ts';
import {
  type GangMember,
  type GangPlacement,
  gangKeyOf,
  gangMissing,
  gangsOf,
  largestFirst,
  placeGang,
} from '../queue/gangs.ts';
import { isWaiting } from '../queue/waiting.ts';
import { keys } from '../state/keys.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { requestOf } from '../scheduler/request.ts';

export type GangOutlook =
  | { readonly complete: false; readonly message: string }
  | {
      readonly complete: true;
      /** The waiting members, the largest first; more than one. */
      readonly members: readonly GangMember[];
      readonly answer: GangPlacement;
    };

/** Undefined for an instance without a gang, or the only waiting member. A planned instance counts as existing. */
export function gangOutlook(snapshot: Snapshot, instance: Instance): GangOutlook | undefined {
  const { gang } = instance.spec;
  if (gang === undefined) return undefined;
  const known = gangsOf(snapshot).living(gangKeyOf(instance) ?? '');
  const { id, project, name } = instance.metadata;
  const own: Entry<Instance> = { key: keys.instance(project, name), value: instance, revision: 0 };
  const living = known.some(({ value }) => value.metadata.id === id) ? known : [...known, own];
  if (living.length < gang.size) return { complete: false, message: gangMissing(gang, living.length) };
  const waiting = living.filter(({ value }) => isWaiting(value));
  if (waiting.length < 2) return undefined;
  const members = largestFirst(waiting.map((each) => ({ instance: each, request: requestOf(snapshot, each.value) })));
  return { complete: true, members, answer: placeGang(snapshot, gang.name, members) };
}
