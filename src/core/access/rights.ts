// Rights: everything that a principal is permitted, compiled from its roles. Immutable, and compared by `key`.

import {
  type AccessResource,
  accessResources,
  type RoleRules,
  sharedWithProjects,
  type Verb,
} from '../../api/access.ts';
import type { Share, TokenUser } from '../../api/resources/token.ts';
import type { Question } from './question.ts';

/** A role in a project, or in the whole fleet. */
export interface Grant {
  readonly rules: RoleRules;
  readonly project: string | undefined;
}

/** Resources that belong to a project: a role in a project permits something on no others, but for `sharedWithProjects`. */
const ofProjects: ReadonlySet<AccessResource> = new Set<AccessResource>([
  'instance',
  'job',
  'jobTemplate',
  'task',
  'workload',
  'warmPool',
  'spare',
  'group',
  'volume',
  'secret',
  'webhook',
  'event',
  'project',
  'priority',
  'token',
  'binding',
  'audit',
]);

export interface RightsParts {
  readonly grants: readonly Grant[];
  /** A token for one instance. */
  readonly share?: Share & { readonly project: string };
  /** Of the owner of the token: it never permits more. */
  readonly limit?: Rights | undefined;
  /** When the token or one of its owners expires first, in milliseconds since 1970. */
  readonly expiresAtMs?: number | undefined;
  /** The token itself, and the user who logged in: they may read and delete their own tokens. */
  readonly self?: { readonly uid: string; readonly user: TokenUser | undefined };
}

export class Rights {
  readonly expiresAtMs: number;
  readonly #parts: RightsParts;
  #key: string | undefined;

  constructor(parts: RightsParts) {
    this.#parts = parts;
    this.expiresAtMs = Math.min(
      parts.expiresAtMs ?? Number.POSITIVE_INFINITY,
      parts.limit?.expiresAtMs ?? Number.POSITIVE_INFINITY,
    );
  }

  /** Two of the same key permit the same. */
  get key(): string {
    const { grants, share, limit, self } = this.#parts;
    this.#key ??= JSON.stringify([grants, share, limit?.key, self?.uid, this.expiresAtMs]);
    return this.#key;
  }

  /** Whether it opens one instance only. */
  get isShare(): boolean {
    return this.#parts.share !== undefined;
  }

  allows(question: Question): boolean {
    const { limit } = this.#parts;
    if (this.#isOwn(question)) return true;
    return this.#grants(question) && (limit === undefined || limit.allows(question));
  }

  /** Whether there is any object on which the verb is permitted; it may be a single one, or one's own. */
  anywhere(verb: Verb, resource: AccessResource): boolean {
    const { grants, share, limit, self } = this.#parts;
    if (resource === 'token' && self !== undefined && (verb === 'read' || verb === 'delete')) return true;
    const own =
      (share !== undefined && resource === 'instance' && inShare(share, verb)) ||
      grants.some(
        (grant) => permits(grant, verb, resource) && (grant.project === undefined || isReached(verb, resource)),
      );
    return own && (limit === undefined || limit.anywhere(verb, resource));
  }

  /** Whether the verb is permitted on every object of the fleet. */
  everywhere(verb: Verb, resource: AccessResource): boolean {
    return this.allows({ verb, resource });
  }

  /** The first thing that a role in this place would permit and these rights do not; undefined: they permit as much. */
  missingFor({ rules, project }: Grant): Pick<Question, 'verb' | 'resource'> | undefined {
    for (const resource of accessResources)
      for (const verb of rules[resource] ?? [])
        if ((project === undefined || isReached(verb, resource)) && !this.#covers({ verb, resource }, project))
          return { verb, resource };
    return undefined;
  }

  #covers({ verb, resource }: Pick<Question, 'verb' | 'resource'>, project: string | undefined): boolean {
    const { grants, limit } = this.#parts;
    return (
      grants.some(
        (grant) => permits(grant, verb, resource) && (grant.project === undefined || grant.project === project),
      ) &&
      (limit === undefined || limit.#covers({ verb, resource }, project))
    );
  }

  #grants({ verb, resource, project, id }: Question): boolean {
    const { grants, share } = this.#parts;
    if (share !== undefined && resource === 'instance' && id === share.instanceId && inShare(share, verb)) return true;
    return grants.some(
      (grant) =>
        permits(grant, verb, resource) &&
        (grant.project === undefined ||
          (isShared(verb, resource)
            ? project === undefined || project === grant.project
            : project === grant.project && ofProjects.has(resource))),
    );
  }

  #isOwn({ verb, resource, id, owner }: Question): boolean {
    const { self } = this.#parts;
    if (resource !== 'token' || self === undefined || (verb !== 'read' && verb !== 'delete')) return false;
    return id === self.uid || owner?.id === self.uid || sameUser(owner?.user, self.user);
  }
}

function permits({ rules }: Grant, verb: Verb, resource: AccessResource): boolean {
  return rules[resource]?.includes(verb) ?? false;
}

function isShared(verb: Verb, resource: AccessResource): boolean {
  return sharedWithProjects[resource]?.includes(verb) ?? false;
}

function isReached(verb: Verb, resource: AccessResource): boolean {
  return ofProjects.has(resource) || isShared(verb, resource);
}

/** A share also reads the record of its instance, without what may be secret: clients look at it first. */
function inShare({ verbs }: Share, verb: Verb): boolean {
  return verb === 'read' || verbs.some((each) => each === verb);
}

function sameUser(a: TokenUser | undefined, b: TokenUser | undefined): boolean {
  return a !== undefined && b !== undefined && a.provider === b.provider && a.subject === b.subject;
}
