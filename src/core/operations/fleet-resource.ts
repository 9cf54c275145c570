// What operators do with images, sizes and pools: records without a life of their own.

import { ApiError } from '../../api/errors.ts';
import type { Image } from '../../api/resources/image.ts';
import type { Pool } from '../../api/resources/pool.ts';
import type { Size } from '../../api/resources/size.ts';
import { schemaVersion } from '../state/codec.ts';
import type { Context } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import { type Plan, unchanged } from '../state/plan.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { assertFree, type CreateInput, earlierCreate, newMetadata, rememberCreate } from './create.ts';
import type { Decision } from './decision.ts';
import { equalJson, existing, replacedMetadata } from './replace.ts';

type FleetResource = Image | Size | Pool;
export type FleetKind = FleetResource['kind'];
type OfKind<K extends FleetKind> = Extract<FleetResource, { kind: K }>;
type SpecOf<K extends FleetKind> = OfKind<K>['spec'];

const idPrefix: Readonly<Record<FleetKind, string>> = { image: 'img', size: 'size', pool: 'pool' };

/** `make` only joins the parts: it keeps kind and spec of one type. */
export function createFleetResource<K extends FleetKind>(
  snapshot: Snapshot,
  kind: K,
  input: CreateInput<SpecOf<K>>,
  make: (head: Pick<FleetResource, 'schemaVersion' | 'metadata' | 'status'>) => OfKind<K>,
  ctx: Context,
): Decision {
  const earlier = earlierCreate(snapshot, input, kind);
  if (earlier) return earlier;
  const key = keys[kind](input.name);
  assertFree(snapshot, kind, key, input.name);
  const id = ctx.newId(idPrefix[kind]);
  const resource = make({ schemaVersion, metadata: newMetadata(id, input, ctx), status: {} });
  assertAliasesFree(snapshot, resource);
  return {
    plan: { changes: [{ key, ifRevision: 0, value: resource }, ...rememberCreate(input, kind, { key, id }, ctx)] },
    key,
    changed: true,
  };
}

export function replaceFleetResource<K extends FleetKind>(
  snapshot: Snapshot,
  kind: K,
  input: CreateInput<SpecOf<K>> & { readonly ifRevision?: number },
  make: (head: Pick<FleetResource, 'schemaVersion' | 'metadata' | 'status'>) => OfKind<K>,
): Decision {
  const key = keys[kind](input.name);
  const entry = existing(snapshot, kind, key, input.ifRevision);
  const specChanged = !equalJson(entry.value.spec, input.spec);
  if (!specChanged && equalJson(entry.value.metadata.labels, input.labels))
    return { plan: unchanged(entry), key, changed: false };
  const metadata = replacedMetadata(entry.value.metadata, { labels: input.labels, specChanged });
  const resource = make({ schemaVersion, metadata, status: {} });
  assertAliasesFree(snapshot, resource);
  return { plan: { changes: [{ key, ifRevision: entry.revision, value: resource }] }, key, changed: true };
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

function assertAliasesFree(snapshot: Snapshot, resource: FleetResource): void {
  if (resource.kind !== 'image') return;
  for (const [i, alias] of resource.spec.aliases.entries()) {
    const other = snapshot.imageByName(alias);
    if (other && other.value.metadata.name !== resource.metadata.name) {
      throw new ApiError('AlreadyExists', `"${alias}" already means image "${other.value.metadata.name}"`, {
        field: `spec.aliases[${i}]`,
      });
    }
  }
}
