// What operators do with images, sizes, pools and projects: records without a life of their own.

import { ApiError } from '../../api/errors.ts';
import type { Image } from '../../api/resources/image.ts';
import type { Labels, Metadata } from '../../api/resources/metadata.ts';
import type { Pool } from '../../api/resources/pool.ts';
import type { Project } from '../../api/resources/project.ts';
import type { Size } from '../../api/resources/size.ts';
import { schemaVersion } from '../state/codec.ts';
import type { Context } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import { type Plan, unchanged } from '../state/plan.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { assertFree, type CreateInput, earlierCreate, newMetadata, rememberCreate } from './create.ts';
import type { Decision } from './decision.ts';
import { assertWeightNames } from './host-demand.ts';
import { equalJson, existing, replacedMetadata } from './replace.ts';

interface FleetByKind {
  readonly image: Image;
  readonly size: Size;
  readonly pool: Pool;
  readonly project: Project;
}
export type FleetKind = keyof FleetByKind;
type FleetResource = FleetByKind[FleetKind];
export type FleetSpec<K extends FleetKind> = FleetByKind[K]['spec'];
type Head = Pick<FleetResource, 'schemaVersion' | 'metadata' | 'status'>;

const idPrefix: Readonly<Record<FleetKind, string>> = { image: 'img', size: 'size', pool: 'pool', project: 'proj' };

/** Kind and spec of one type, joined. */
const join: { readonly [K in FleetKind]: (head: Head, spec: FleetSpec<K>) => FleetByKind[K] } = {
  image: (head, spec) => ({ kind: 'image', ...head, spec }),
  size: (head, spec) => ({ kind: 'size', ...head, spec }),
  pool: (head, spec) => ({ kind: 'pool', ...head, spec }),
  project: (head, spec) => ({ kind: 'project', ...head, spec }),
};

export function createFleetResource<K extends FleetKind>(
  snapshot: Snapshot,
  kind: K,
  input: CreateInput<FleetSpec<K>>,
  ctx: Context,
): Decision {
  const earlier = earlierCreate(snapshot, input, kind);
  if (earlier) return earlier;
  const key = keys[kind](input.name);
  assertFree(snapshot, kind, key, input.name);
  const resource = newFleetResource(kind, input, ctx);
  assertNamesFree(snapshot, resource);
  if (resource.kind === 'pool') assertWeightNames(resource.spec.weights, 'spec.weights');
  const { id } = resource.metadata;
  return {
    plan: { changes: [{ key, ifRevision: 0, value: resource }, ...rememberCreate(input, kind, { key, id }, ctx)] },
    key,
    changed: true,
  };
}

export function replaceFleetResource<K extends FleetKind>(
  snapshot: Snapshot,
  kind: K,
  input: CreateInput<FleetSpec<K>> & { readonly ifRevision?: number },
): Decision {
  const key = keys[kind](input.name);
  const entry = existing(snapshot, kind, key, input.ifRevision);
  const resource = changedFleetResource(kind, entry.value.metadata, entry.value.spec, input);
  if (!resource) return { plan: unchanged(entry), key, changed: false };
  assertNamesFree(snapshot, resource);
  if (resource.kind === 'pool') assertWeightNames(resource.spec.weights, 'spec.weights');
  return { plan: { changes: [{ key, ifRevision: entry.revision, value: resource }] }, key, changed: true };
}

export function newFleetResource<K extends FleetKind>(
  kind: K,
  input: CreateInput<FleetSpec<K>>,
  ctx: Context,
): FleetByKind[K] {
  const metadata = newMetadata(ctx.newId(idPrefix[kind]), input, ctx);
  return join[kind]({ schemaVersion, metadata, status: {} }, input.spec);
}

/** With the wanted labels and spec; undefined when they are what they were. */
export function changedFleetResource<K extends FleetKind>(
  kind: K,
  metadata: Metadata,
  spec: unknown,
  wanted: { readonly labels: Labels; readonly spec: FleetSpec<K> },
): FleetByKind[K] | undefined {
  const specChanged = !equalJson(spec, wanted.spec);
  if (!specChanged && equalJson(metadata.labels, wanted.labels)) return undefined;
  const replaced = replacedMetadata(metadata, { labels: wanted.labels, specChanged });
  return join[kind]({ schemaVersion, metadata: replaced, status: {} }, wanted.spec);
}

/** A pool that hosts are in, or an image or size that waiting instances ask for, may go: what waits then says so. */
export function deleteFleetResource(
  snapshot: Snapshot,
  kind: FleetKind,
  input: { readonly name: string; readonly ifRevision?: number },
): Decision {
  const key = keys[kind](input.name);
  const entry = existing(snapshot, kind, key, input.ifRevision);
  const plan: Plan = { changes: [{ key, ifRevision: entry.revision, value: null }] };
  return { plan, key, changed: true };
}

/** One word leads to one image, be it a name or an alias. */
function assertNamesFree(snapshot: Snapshot, resource: FleetResource): void {
  if (resource.kind !== 'image') return;
  const own = resource.metadata.name;
  const words = [own, ...resource.spec.aliases];
  for (const [i, word] of words.entries()) {
    const other = snapshot.imageByName(word)?.value.metadata.name;
    if (other === undefined || other === own) continue;
    throw new ApiError('AlreadyExists', `"${word}" already means image "${other}"`, {
      field: i === 0 ? 'metadata.name' : `spec.aliases[${i - 1}]`,
    });
  }
}
