// Finds a resource by name or id, as far as the caller may know of it.

import { type Kind, type ResourceByKind, resourceDefinitions } from '../../../api/resources/index.ts';
import type { ResourceDefinition } from '../../../api/resources/metadata.ts';
import type { Cache } from '../../../core/state/cache.ts';
import { isIndexed, keyOfId } from '../../../core/state/ids.ts';
import type { Entry } from '../../../core/state/snapshot.ts';
import { mayKnow, mayRead, notFound } from '../../../core/access/may.ts';
import type { Caller } from '../caller.ts';
import { defaultProject } from './sent-resource.ts';

export function keyFor(definition: ResourceDefinition, name: string, project: string): string {
  return `${definition.plural}/${definition.scope === 'fleet' ? '' : `${project}/`}${name}`;
}

interface Wanted {
  readonly caller: Pick<Caller, 'principal'>;
  readonly name: string;
  readonly project: string;
}

/** By name, or by id. Throws `NotFound`, also when the caller may not know of it. */
export function find<K extends Kind>(
  kind: K,
  definition: ResourceDefinition,
  cache: Cache,
  { caller, name, project }: Wanted,
): Entry<ResourceByKind[K]> {
  const byName = cache.committed(kind, keyFor(definition, name, project));
  if (byName && mayRead(caller.principal, byName.value, cache)) return byName;
  const byId = findById(kind, definition, cache, name);
  if (byId && mayKnow(caller.principal, byId.value, cache)) return byId;
  throw notFound(kind, name, definition.scope === 'project' && project !== defaultProject ? project : '');
}

function findById<K extends Kind>(
  kind: K,
  definition: ResourceDefinition,
  cache: Cache,
  id: string,
): Entry<ResourceByKind[K]> | undefined {
  if (!id.startsWith(`${definition.idPrefix}_`)) return undefined;
  const isInstance = kind === 'instance';
  if (isInstance || isIndexed(kind)) {
    const key = isInstance ? cache.instanceById(id)?.key : keyOfId(cache, kind, id);
    const entry = key === undefined ? undefined : cache.committed(kind, key);
    return entry?.value.metadata.id === id ? entry : undefined;
  }
  for (const entry of cache.listCommitted(kind)) if (entry.value.metadata.id === id) return entry;
  return undefined;
}

/** Finds a resource of a project for the routes of its own. Throws `NotFound`, also when the caller may not know of it. */
export function findOne<
  K extends 'instance' | 'job' | 'task' | 'workload' | 'warmPool' | 'jobTemplate' | 'spare' | 'webhook',
>(
  kind: K,
  cache: Cache,
  { caller, name, project = defaultProject }: Omit<Wanted, 'project'> & { readonly project?: string | undefined },
): Entry<ResourceByKind[K]> {
  return find(kind, resourceDefinitions[kind], cache, { caller, name, project });
}
