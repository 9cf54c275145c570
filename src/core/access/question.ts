// Question: may a caller do this? And the question about a stored resource.

import type { AccessResource, Verb } from '../../api/access.ts';
import type { AnyResource } from '../../api/resources/index.ts';
import type { TokenUser } from '../../api/resources/token.ts';

export interface Question {
  readonly verb: Verb;
  readonly resource: AccessResource;
  /** Absent: about the fleet, or about an object of the fleet. */
  readonly project?: string | undefined;
  /** Of the object. */
  readonly id?: string | undefined;
  /** Of a token: who may read and delete it because it is theirs. */
  readonly owner?: { readonly id?: string | undefined; readonly user?: TokenUser | undefined };
}

/** Whether `verb` is permitted on a stored resource. */
export function about(verb: Verb, resource: AnyResource): Question {
  const { id } = resource.metadata;
  return { verb, resource: resource.kind, project: projectOf(resource), id, ...ownerOf(resource) };
}

/** The project in which a role permits something on the resource; undefined: it belongs to the fleet. */
export function projectOf(resource: AnyResource): string | undefined {
  switch (resource.kind) {
    case 'project':
      return resource.metadata.name;
    case 'token':
    case 'binding':
      return resource.spec.project;
    default:
      return resource.metadata.project || undefined;
  }
}

function ownerOf(resource: AnyResource): Pick<Question, 'owner'> {
  if (resource.kind !== 'token') return {};
  const { owner, user } = resource.spec;
  return { owner: { id: owner?.id, user } };
}
