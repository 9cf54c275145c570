// Applies the image map in one decision: all of its images and sizes, or none. It never takes an alias from an image
// that is not of the map.

import { ApiError } from '../../api/errors.ts';
import type { Image, ImageSpec } from '../../api/resources/image.ts';
import type { SizeSpec } from '../../api/resources/size.ts';
import type { Context } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import { type Change, type Plan, unchanged } from '../state/plan.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { changedPlainResource, type PlainKind, type PlainSpec, newPlainResource } from './plain-resource.ts';

export interface WantedImageMap {
  readonly images: readonly { readonly name: string; readonly spec: ImageSpec }[];
  readonly sizes: readonly { readonly name: string; readonly spec: SizeSpec }[];
}

/** On every image of the map. Without this label an image keeps its aliases when the map drops it. */
const source = { key: 'berth.dev/source', value: 'image-map' } as const;

/** Throws `AlreadyExists` when a name or alias of the map belongs to an image that is not of the map. */
export function applyImageMap(snapshot: Snapshot, map: WantedImageMap, ctx: Context): { readonly plan: Plan } {
  const named = new Set(map.images.map(({ name }) => name));
  const others = [...snapshot.list('image')].filter(({ value }) => !named.has(value.metadata.name));
  const [dropped, foreign] = partition(others, ({ value }) => value.metadata.labels[source.key] === source.value);
  assertFree(map, foreign);
  const changes = [
    ...dropped.map(letGo),
    ...map.images.flatMap((image) => put(snapshot, 'image', image, ctx)),
    ...map.sizes.flatMap((size) => put(snapshot, 'size', size, ctx)),
  ];
  if (changes.length > 0) return { plan: { changes } };
  return { plan: unchanged(...map.images.flatMap(({ name }) => snapshot.get('image', keys.image(name)) ?? [])) };
}

function put<K extends 'image' | 'size'>(
  snapshot: Snapshot,
  kind: K,
  { name, spec }: { readonly name: string; readonly spec: PlainSpec<K> },
  ctx: Context,
): Change[] {
  const key = keys[kind](name);
  const entry = snapshot.get<PlainKind>(kind, key);
  const labels = {
    ...entry?.value.metadata.labels,
    ...(kind === 'image' ? { [source.key]: source.value } : {}),
  };
  if (!entry) return [{ key, ifRevision: 0, value: newPlainResource(kind, { project: '', name, labels, spec }, ctx) }];
  const value = changedPlainResource(kind, entry.value.metadata, entry.value.spec, { labels, spec });
  return value ? [{ key, ifRevision: entry.revision, value }] : [];
}

/**
 * The map no longer contains the image: it stays for the instances that use it and becomes the operator's, but its
 * aliases belonged to the map.
 */
function letGo({ key, revision, value }: Entry<Image>): Change {
  const { [source.key]: _source, ...labels } = value.metadata.labels;
  const spec = { ...value.spec, aliases: [] };
  const changed = changedPlainResource('image', value.metadata, value.spec, { labels, spec });
  return { key, ifRevision: revision, value: changed ?? value };
}

function assertFree(map: WantedImageMap, foreign: readonly Entry<Image>[]): void {
  const holders = new Map<string, string>();
  for (const { value } of foreign) {
    for (const word of [value.metadata.name, ...value.spec.aliases]) holders.set(word, value.metadata.name);
  }
  for (const { name, spec } of map.images) {
    for (const word of [name, ...spec.aliases]) {
      const holder = holders.get(word);
      if (holder === undefined) continue;
      throw new ApiError(
        'AlreadyExists',
        `the image map wants "${word}" to mean image "${name}", but it already means image "${holder}", which is not of the map; ` +
          `remove image "${holder}" or its alias, or change the map`,
        { field: `images.${name}` },
      );
    }
  }
}

function partition<T>(all: readonly T[], belongs: (each: T) => boolean): [T[], T[]] {
  return [all.filter(belongs), all.filter((each) => !belongs(each))];
}
