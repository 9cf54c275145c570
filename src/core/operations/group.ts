// What users do with placement groups. A changed policy is for those that are placed from now on; nobody is moved.

import { ApiError } from '../../api/errors.ts';
import type { Group, GroupSpec } from '../../api/resources/group.ts';
import { fleetOf } from '../scheduler/fleet.ts';
import { schemaVersion } from '../state/codec.ts';
import type { Context } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import { unchanged } from '../state/plan.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { assertFree, type CreateInput, earlierCreate, newMetadata, rememberCreate } from './create.ts';
import type { Decision } from './decision.ts';
import { assertPolicy } from './placement-rules.ts';
import { equalJson, existing, replacedMetadata } from './replace.ts';

export function createGroup(snapshot: Snapshot, input: CreateInput<GroupSpec>, ctx: Context): Decision {
  const earlier = earlierCreate(snapshot, input, 'group');
  if (earlier) return earlier;
  assertPolicy(input.spec);
  const key = keys.group(input.project, input.name);
  assertFree(snapshot, 'group', key, input.name);
  const id = ctx.newId('grp');
  const value: Group = {
    kind: 'group',
    schemaVersion,
    metadata: newMetadata(id, input, ctx),
    spec: input.spec,
    status: {},
  };
  return {
    plan: { changes: [{ key, ifRevision: 0, value }, ...rememberCreate(input, 'group', { key, id }, ctx)] },
    key,
    changed: true,
  };
}

export function replaceGroup(
  snapshot: Snapshot,
  input: CreateInput<GroupSpec> & { readonly ifRevision?: number },
): Decision {
  assertPolicy(input.spec);
  const key = keys.group(input.project, input.name);
  const entry = existing(snapshot, 'group', key, input.ifRevision);
  const { value } = entry;
  const specChanged = !equalJson(value.spec, input.spec);
  if (!specChanged && equalJson(value.metadata.labels, input.labels))
    return { plan: unchanged(entry), key, changed: false };
  const metadata = replacedMetadata(value.metadata, { labels: input.labels, specChanged });
  return {
    plan: { changes: [{ key, ifRevision: entry.revision, value: { ...value, metadata, spec: input.spec } }] },
    key,
    changed: true,
  };
}

/** Throws `Conflict` while instances name it: without its rules they could not be placed again. */
export function deleteGroup(
  snapshot: Snapshot,
  input: { readonly project: string; readonly name: string; readonly ifRevision?: number },
): Decision {
  const key = keys.group(input.project, input.name);
  const entry = existing(snapshot, 'group', key, input.ifRevision);
  const selector = { project: input.project, labels: {}, placementGroup: input.name };
  const members = [...fleetOf(snapshot).groups.instancesOf(selector)];
  const [first] = members;
  if (first) {
    throw new ApiError(
      'Conflict',
      `placement group "${input.name}" has ${members.length === 1 ? 'one instance' : `${members.length} instances`} (${first.value.metadata.name}${members.length > 1 ? ', ...' : ''}); remove them first`,
    );
  }
  return { plan: { changes: [{ key, ifRevision: entry.revision, value: null }] }, key, changed: true };
}
