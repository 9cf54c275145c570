// The one question of access: may this principal do that? Every way in asks it, on the snapshot of its decision.

import { ApiError } from '../../api/errors.ts';
import type { AnyResource } from '../../api/resources/index.ts';
import type { Verb } from '../../api/access.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { describePrincipal, type Principal } from './principal.ts';
import { about, type Question } from './question.ts';
import { rightsOf } from './rights-of.ts';

/** Undefined: it is permitted. Else why not, for people. */
export function may(principal: Principal, question: Question, snapshot: Snapshot): string | undefined {
  if (rightsOf(principal, snapshot).allows(question)) return undefined;
  const { verb, resource, project } = question;
  const where = project === undefined ? '' : ` in project "${project.slice(0, 80)}"`;
  return `${describePrincipal(principal)} does not permit "${verb}" on ${resource}${where}`;
}

/** Throws `Forbidden`. The answer is the same for a project of others and for one that does not exist. */
export function assertMay(snapshot: Snapshot, principal: Principal, question: Question, field?: string): void {
  const why = may(principal, question, snapshot);
  if (why !== undefined) throw new ApiError('Forbidden', why, field === undefined ? {} : { field });
}

/** Whether the principal may read the resource, and so know its name. */
export function mayRead(principal: Principal, resource: AnyResource, snapshot: Snapshot): boolean {
  return rightsOf(principal, snapshot).allows(about('read', resource));
}

/** Whether the principal may know that the resource exists. A principal that sees only where it is knows its id. */
export function mayKnow(principal: Principal, resource: AnyResource, snapshot: Snapshot): boolean {
  const rights = rightsOf(principal, snapshot);
  if (rights.allows(about('read', resource))) return true;
  // Events of a project tell more than where its guests are.
  if (resource.kind === 'event' && resource.metadata.project !== '') return false;
  return rights.allows(about('read-placement', resource));
}

/**
 * Throws `NotFound` when the principal may not even read the resource, as when there is none; and `Forbidden` when it may
 * read it but not do this.
 */
export function assertMayOn(snapshot: Snapshot, principal: Principal, verb: Verb, resource: AnyResource): void {
  const rights = rightsOf(principal, snapshot);
  if (rights.allows(about(verb, resource))) return;
  const { kind, metadata } = resource;
  if (!mayKnow(principal, resource, snapshot)) throw notFound(kind, metadata.name);
  throw new ApiError('Forbidden', may(principal, about(verb, resource), snapshot) ?? '');
}

export function notFound(kind: string, name: string, project = ''): ApiError {
  const place = project === '' ? '' : ` in project "${project}"`;
  return new ApiError('NotFound', `there is no ${kind} "${name.slice(0, 80)}"${place}`);
}
