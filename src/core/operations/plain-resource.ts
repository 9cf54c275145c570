// What users do with images, sizes, pools, projects and placement groups: records without a life cycle. A change
// applies to later placements; it moves no instance.

import { assertContainerImage } from '../../api/container-image.ts';
import { ApiError } from '../../api/errors.ts';
import { instancesClass } from '../../api/resource-class.ts';
import type { Binding } from '../../api/resources/binding.ts';
import type { Group } from '../../api/resources/group.ts';
import type { Image } from '../../api/resources/image.ts';
import type { Labels, Metadata } from '../../api/resources/metadata.ts';
import type { Pool } from '../../api/resources/pool.ts';
import type { Project } from '../../api/resources/project.ts';
import type { Role } from '../../api/resources/role.ts';
import type { Size } from '../../api/resources/size.ts';
import { effectsOf, isUsed, type UsedResource } from '../plans/effects/effects.ts';
import { assertBinding, assertRoleName, assertRoleUnused } from './access/role-rules.ts';
import { fleetOf } from '../scheduler/fleet.ts';
import { schemaVersion } from '../state/upgrade.ts';
import type { Context } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import type { Plan } from '../state/plan.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { assertFree, type CreateInput, earlierCreate, newMetadata, rememberCreate } from './create.ts';
import { alreadyDone, type Decision } from './decision.ts';
import { assertWeightNames } from './host-demand.ts';
import { assertKnownClasses } from './known-classes.ts';
import { assertPolicy } from './placement-rules.ts';
import { equalJson } from '../../base/equal-json.ts';
import { type DeleteInput, existing, replacedMetadata, type ReplaceInput } from './replace.ts';

interface PlainByKind {
  readonly image: Image;
  readonly size: Size;
  readonly pool: Pool;
  readonly project: Project;
  readonly group: Group;
  readonly role: Role;
  readonly binding: Binding;
}
export type PlainKind = keyof PlainByKind;
type PlainResource = PlainByKind[PlainKind];
export type PlainSpec<K extends PlainKind> = PlainByKind[K]['spec'];
type Head = Pick<Image, 'schemaVersion' | 'metadata' | 'status'>;

const idPrefix: Readonly<Record<PlainKind, string>> = {
  image: 'img',
  size: 'size',
  pool: 'pool',
  project: 'proj',
  group: 'grp',
  role: 'role',
  binding: 'bind',
};

const keyOf: Readonly<Record<PlainKind, (of: { readonly project: string; readonly name: string }) => string>> = {
  image: ({ name }) => keys.image(name),
  size: ({ name }) => keys.size(name),
  pool: ({ name }) => keys.pool(name),
  project: ({ name }) => keys.project(name),
  group: ({ project, name }) => keys.group(project, name),
  role: ({ name }) => keys.role(name),
  binding: ({ name }) => keys.binding(name),
};

/** Joins kind and spec of one type. */
const join: { readonly [K in PlainKind]: (head: Head, spec: PlainSpec<K>) => PlainByKind[K] } = {
  image: (head, spec) => ({ kind: 'image', ...head, spec }),
  size: (head, spec) => ({ kind: 'size', ...head, spec }),
  pool: (head, spec) => ({ kind: 'pool', ...head, spec }),
  project: (head, spec) => ({ kind: 'project', ...head, spec }),
  group: (head, spec) => ({ kind: 'group', ...head, spec }),
  role: (head, spec) => ({ kind: 'role', ...head, spec }),
  binding: (head, spec) => ({ kind: 'binding', ...head, spec }),
};

export function createPlainResource<K extends PlainKind>(
  snapshot: Snapshot,
  kind: K,
  input: CreateInput<PlainSpec<K>>,
  ctx: Context,
): Decision {
  const earlier = earlierCreate(snapshot, input, kind);
  if (earlier) return earlier;
  const key = keyOf[kind](input);
  assertFree(snapshot, kind, key, input.name);
  const resource = newPlainResource(kind, input, ctx);
  assertMeant(snapshot, resource);
  const { id } = resource.metadata;
  return {
    plan: { changes: [{ key, ifRevision: 0, value: resource }, ...rememberCreate(input, kind, { key, id }, ctx)] },
    key,
    changed: true,
  };
}

export function replacePlainResource<K extends PlainKind>(
  snapshot: Snapshot,
  kind: K,
  input: ReplaceInput<PlainSpec<K>>,
): Decision {
  const key = keyOf[kind](input);
  const entry = existing(snapshot, kind, key, input.ifRevision);
  const resource = changedPlainResource(kind, entry.value.metadata, entry.value.spec, input);
  if (!resource) return alreadyDone(entry);
  assertMeant(snapshot, resource);
  return { plan: { changes: [{ key, ifRevision: entry.revision, value: resource }] }, key, changed: true };
}

export function newPlainResource<K extends PlainKind>(
  kind: K,
  input: CreateInput<PlainSpec<K>>,
  ctx: Context,
): PlainByKind[K] {
  const metadata = newMetadata(ctx.newId(idPrefix[kind]), input, ctx);
  return join[kind]({ schemaVersion, metadata, status: {} }, input.spec);
}

/** With the wanted labels and spec; undefined when nothing changes. */
export function changedPlainResource<K extends PlainKind>(
  kind: K,
  metadata: Metadata,
  spec: unknown,
  wanted: { readonly labels: Labels; readonly spec: PlainSpec<K> },
): PlainByKind[K] | undefined {
  const specChanged = !equalJson(spec, wanted.spec);
  if (!specChanged && equalJson(metadata.labels, wanted.labels)) return undefined;
  const replaced = replacedMetadata(metadata, { labels: wanted.labels, specChanged });
  return join[kind]({ schemaVersion, metadata: replaced, status: {} }, wanted.spec);
}

export interface PlainDeletion extends DeleteInput {
  /** The hash of the effects that the caller accepts. */
  readonly apply?: string;
}

/**
 * Throws `Conflict` for a pool, an image or a size in use, unless the caller accepts the effects by their hash; always for a placement group
 * while instances name it: without its rules they could not be placed again.
 */
export function deletePlainResource(
  snapshot: Snapshot,
  kind: PlainKind,
  input: PlainDeletion,
  ctx: Pick<Context, 'policy'>,
): Decision {
  const key = keyOf[kind](input);
  const entry = existing(snapshot, kind, key, input.ifRevision);
  if (kind === 'group') assertNoMembers(snapshot, input);
  if (isUsed(entry.value) && (kind !== 'group' || input.apply !== undefined))
    assertAccepted(snapshot, entry.value, input.apply, ctx);
  if (kind === 'role') assertRoleUnused(snapshot, input.name);
  const plan: Plan = { changes: [{ key, ifRevision: entry.revision, value: null }] };
  return { plan, key, changed: true };
}

function assertAccepted(
  snapshot: Snapshot,
  before: UsedResource,
  apply: string | undefined,
  { policy }: Pick<Context, 'policy'>,
): void {
  const { hash, count } = effectsOf(snapshot, { before, after: undefined }, policy);
  if (apply === undefined ? count === 0 : apply === hash) return;
  const { kind, metadata } = before;
  const what = `${kind} "${metadata.name}"`;
  const message =
    apply === undefined
      ? `${what} is in use: its deletion affects ${count === 1 ? 'one resource' : `${count} resources`}`
      : `what the deletion of ${what} affects is no longer as it was shown; look at it again`;
  throw new ApiError('Conflict', message, { field: 'apply', details: { hash, count } });
}

function assertNoMembers(
  snapshot: Snapshot,
  { project, name }: { readonly project: string; readonly name: string },
): void {
  const selector = { project, labels: {}, placementGroup: name };
  const members = [...fleetOf(snapshot).groups.instancesOf(selector)];
  const [first] = members;
  if (!first) return;
  const count = members.length === 1 ? 'one instance' : `${members.length} instances`;
  const named = `${first.value.metadata.name}${members.length > 1 ? ', ...' : ''}`;
  throw new ApiError('Conflict', `placement group "${name}" has ${count} (${named}); remove them first`);
}

/** Throws `InvalidRequest` or `AlreadyExists` naming the field. */
function assertMeant(snapshot: Snapshot, resource: PlainResource): void {
  switch (resource.kind) {
    case 'image':
      assertContainerImage(resource.spec);
      return assertNamesFree(snapshot, resource);
    case 'pool':
      assertKnownClasses(resource.spec.allocationRatios ?? {}, 'spec.allocationRatios');
      return assertWeightNames(resource.spec.weights, 'spec.weights');
    case 'project':
      assertKnownClasses(resource.spec.quota ?? {}, 'spec.quota', [instancesClass]);
      return assertKnownClasses(resource.spec.guarantee ?? {}, 'spec.guarantee');
    case 'group':
      return assertPolicy(resource.spec);
    case 'role':
      return assertRoleName(resource.metadata.name);
    case 'binding':
      return assertBinding(snapshot, resource.spec);
    default:
  }
}

/** A word leads to one image, as a name or as an alias. */
function assertNamesFree(snapshot: Snapshot, { metadata, spec }: Image): void {
  const own = metadata.name;
  const words = [own, ...spec.aliases];
  for (const [i, word] of words.entries()) {
    const other = snapshot.imageByName(word)?.value.metadata.name;
    if (other === undefined || other === own) continue;
    throw new ApiError('AlreadyExists', `"${word}" already means image "${other}"`, {
      field: i === 0 ? 'metadata.name' : `spec.aliases[${i - 1}]`,
    });
  }
}
