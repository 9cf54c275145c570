// What a caller sees: which resources of a kind at all, and how much of each.

import type { AccessResource } from '../../../api/access.ts';
import { ApiError } from '../../../api/errors.ts';
import { type AnyResource, type Kind, resourceDefinitions } from '../../../api/resources/index.ts';
import type { Principal } from '../../../core/access/principal.ts';
import { about } from '../../../core/access/question.ts';
import type { Rights } from '../../../core/access/rights.ts';
import { rightsOf } from '../../../core/access/rights-of.ts';
import type { Snapshot } from '../../../core/state/snapshot.ts';
import type { Explanation } from '../../../api/explanation.ts';
import { explanationWithoutNames } from '../../../core/access/without-names.ts';
import { withoutSecrets } from './without-secrets.ts';

/** Whether a caller may know of what is at a key. For tokens and bindings this needs the resource. */
export type KnownKeys = 'all' | ((key: string, resource?: AnyResource) => boolean);

/** As the caller may see a resource: as the only one of an answer, or as one of several. */
export type Seen = (resource: AnyResource, among: 'one' | 'several') => AnyResource;

/** Whether nothing is hidden from this principal in an answer about one resource. */
export function seesAll(principal: Principal): boolean {
  return principal.kind === 'admin';
}

/** Throws `Forbidden` for a project in which the caller may read nothing of the kind, whether it exists or not. */
export function visibleKeys(
  principal: Principal,
  kind: Kind,
  snapshot: Snapshot,
  project: string | undefined,
  how: 'list' | 'watch' = 'list',
): KnownKeys {
  if (seesAll(principal)) return 'all';
  const rights = rightsOf(principal, snapshot);
  const knows = how === 'list' || kind === 'event' ? readsOrPlaces : reads;
  // What is deleted is told by its name.
  if (how === 'watch' && kind !== 'event' && !knows(rights, kind, undefined) && !rights.anywhere('read', kind))
    throw new ApiError('Forbidden', `you may not watch ${kind}s; list them instead`);
  if (knows(rights, kind, undefined)) return 'all';
  const { scope } = resourceDefinitions[kind];
  if (scope === 'project' && project !== undefined) {
    if (knows(rights, kind, project)) return 'all';
    if (!rights.isShare)
      throw new ApiError('Forbidden', `you may not read ${kind}s of project "${project.slice(0, 80)}"`);
  }
  if (rights.isShare || kind === 'token' || kind === 'binding') {
    if (how === 'watch')
      throw new ApiError('Forbidden', `a watch of ${kind}s needs a role in the whole fleet; list them instead`);
    return (_key, resource) => resource !== undefined && rights.allows(about('read', resource));
  }
  return byProject((of) => knows(rights, kind, of));
}

/** Whether the caller may know the names of instances of a project. */
export function knowsNames(principal: Principal, snapshot: Snapshot): (project: string) => boolean {
  const rights = rightsOf(principal, snapshot);
  return (project) => rights.allows({ verb: 'read', resource: 'instance', project });
}

/** Whether some resources of the kind are seen by their place only. */
export function seesSomePlaces(principal: Principal, kind: Kind, snapshot: Snapshot): boolean {
  if (seesAll(principal) || kind === 'event') return false;
  const rights = rightsOf(principal, snapshot);
  return !rights.everywhere('read', kind) && rights.everywhere('read-placement', kind);
}

/** The project is the second part of the key, `instances/web/a`; of a project it is the name. */
function byProject(knows: (project: string) => boolean): KnownKeys {
  const known = new Map<string, boolean>();
  return (key) => {
    const begin = key.indexOf('/') + 1;
    const end = key.indexOf('/', begin);
    const project = key.slice(begin, end < 0 ? undefined : end);
    let may = known.get(project);
    if (may === undefined) known.set(project, (may = knows(project)));
    return may;
  };
}

function reads(rights: Rights, resource: AccessResource, project: string | undefined): boolean {
  return rights.allows({ verb: 'read', resource, project });
}

function readsOrPlaces(rights: Rights, resource: AccessResource, project: string | undefined): boolean {
  // A caller with rights on hosts also reads events about the fleet, which belong to no project.
  if (resource === 'event' && project !== '') return rights.allows({ verb: 'read', resource, project });
  return (
    rights.allows({ verb: 'read', resource, project }) || rights.allows({ verb: 'read-placement', resource, project })
  );
}

export function visibleTo(principal: Principal, snapshot: Snapshot): Seen {
  if (seesAll(principal)) return (resource, among) => (among === 'one' ? resource : withoutSecrets(resource));
  const rights = rightsOf(principal, snapshot);
  return (resource, among) => {
    if (!rights.allows(about('read', resource)) && resource.kind !== 'event') return onlyPlace(resource);
    const open = among === 'one' && rights.allows({ ...about('read-user-data', resource), resource: 'instance' });
    return open ? resource : withoutSecrets(resource);
  };
}

/** Id, project, host, size and state: what a caller with rights on hosts may see of a guest. */
function onlyPlace(resource: AnyResource): AnyResource {
  const { id, project, revision, generation, createdAtMs } = resource.metadata;
  const metadata = { id, name: id, project, revision, generation, createdAtMs, labels: {} };
  const spec = only(resource.spec, ['size', 'cpus', 'memoryMiB', 'diskGiB', 'sizeGiB']);
  const status = only(resource.status, ['phase', 'host', 'incarnation', 'assigned']);
  return { ...resource, metadata, spec, status } as AnyResource; // the fields that are left are those of the kind
}

function only(fields: object, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => names.includes(name)));
}

/** Hosts are named to those who may read them, and counted for others. */
export function explanationSeenBy(principal: Principal, snapshot: Snapshot): (explanation: Explanation) => Explanation {
  const rights = rightsOf(principal, snapshot);
  if (rights.everywhere('read', 'host') && rights.everywhere('read', 'instance')) return (explanation) => explanation;
  return (explanation) => explanationWithoutNames(explanation, (project) => reads(rights, 'instance', project));
}
