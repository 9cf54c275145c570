// The rights of a principal, compiled once and kept until a token, a role or a binding changes.

import { builtInRoles, isBuiltInRole, type RoleRules } from '../../api/access.ts';
import type { BindingSubject } from '../../api/resources/binding.ts';
import type { Token, TokenUser } from '../../api/resources/token.ts';
import { equalJson } from '../../base/equal-json.ts';
import { keys } from '../state/keys.ts';
import { defineView, type RecordChange, type Snapshot, type View } from '../state/snapshot.ts';
import type { Principal } from './principal.ts';
import { type Grant, Rights } from './rights.ts';

const none = new Rights({ grants: [] });
const all = new Rights({ grants: [{ rules: builtInRoles.admin.rules, project: undefined }] });

/** Owners of owners: more are refused when a token is made, and permit nothing. */
export const ownersMax = 8;

/** What the principal may do, by the snapshot. A token that was deleted, or made again under its name, may do nothing. */
export function rightsOf(principal: Principal, snapshot: Snapshot): Rights {
  switch (principal.kind) {
    case 'admin':
      return all;
    case 'token':
      return compiledIn(snapshot).ofToken(principal.name, principal.uid);
    case 'intake':
      return compiledIn(snapshot).ofIntake(principal.project);
    case 'host':
    case 'anonymous':
      return none;
  }
}

/** Grows whenever the rights of any caller may have changed. */
export function accessVersion(snapshot: Snapshot): number {
  return compiledIn(snapshot).version;
}

/** What bindings give to a token of this name, or would. */
export function boundToToken(snapshot: Snapshot, name: string): readonly Grant[] {
  return compiledIn(snapshot).boundToToken(name);
}

/** Undefined: there is no such role. */
export function rulesOfRole(snapshot: Snapshot, role: string): RoleRules | undefined {
  return isBuiltInRole(role) ? builtInRoles[role].rules : snapshot.get('role', keys.role(role))?.value.spec.rules;
}

class Compiled implements View {
  version = 0;
  readonly #snapshot: Snapshot;
  readonly #byToken = new Map<string, Rights>();
  /** Of brokers and forges, whose projects are those of the configuration. */
  readonly #byIntake = new Map<string, Rights>();
  #grantsBySubject: Map<string, Grant[]> | undefined;

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
  }

  ofIntake(project: string): Rights {
    let rights = this.#byIntake.get(project);
    if (rights === undefined) {
      rights = new Rights({ grants: [{ rules: builtInRoles['project-admin'].rules, project }] });
      this.#byIntake.set(project, rights);
    }
    return rights;
  }

  apply({ kind, before, after }: RecordChange): void {
    if (kind !== 'token' && kind !== 'role' && kind !== 'binding') return;
    // The time of its last use changes nothing.
    if (before?.kind === 'token' && after?.kind === 'token' && isSameToken(before, after)) return;
    this.version += 1;
    this.#byToken.clear();
    if (kind !== 'token') this.#grantsBySubject = undefined;
  }

  ofToken(name: string, uid: string, depth = 0): Rights {
    const known = this.#byToken.get(uid);
    if (known) return known;
    const token = this.#snapshot.get('token', keys.token(name))?.value;
    if (token === undefined || token.metadata.id !== uid || depth > ownersMax) return none;
    const rights = this.#compile(token, depth);
    if (depth === 0) this.#byToken.set(uid, rights);
    return rights;
  }

  #compile({ metadata: { name, id }, spec }: Token, depth: number): Rights {
    const { role, project, share, user, owner, expiresAtMs } = spec;
    const grants = [...this.#boundTo({ kind: 'token', name })];
    if (role !== undefined) grants.push({ rules: this.#rulesOf(role), project });
    const limit = owner ? this.ofToken(owner.name, owner.id, depth + 1) : undefined;
    const bound = user ? this.#grantsOfUser(user) : [];
    // A login has what its user has; a token that a user made has a role of its own, within that.
    const isLogin = user !== undefined && role === undefined && share === undefined;
    return new Rights({
      grants: isLogin ? [...grants, ...bound] : grants,
      limit: user && !isLogin ? new Rights({ grants: bound, limit }) : limit,
      expiresAtMs,
      ...(share ? { share: { ...share, project: project ?? '' } } : {}),
      self: { uid: id, user },
    });
  }

  #grantsOfUser({ provider, subject, groups }: TokenUser): Grant[] {
    return [
      ...this.#boundTo({ kind: 'user', name: subject, provider }),
      ...groups.flatMap((name) => this.#boundTo({ kind: 'group', name, provider })),
    ];
  }

  #boundTo(subject: BindingSubject): readonly Grant[] {
    this.#grantsBySubject ??= this.#indexed();
    return this.#grantsBySubject.get(keyOf(subject)) ?? [];
  }

  boundToToken(name: string): readonly Grant[] {
    return this.#boundTo({ kind: 'token', name });
  }

  #indexed(): Map<string, Grant[]> {
    const index = new Map<string, Grant[]>();
    for (const { value } of this.#snapshot.list('binding')) {
      const { role, project, subjects } = value.spec;
      const grant = { rules: this.#rulesOf(role), project };
      for (const subject of subjects) {
        const grants = index.get(keyOf(subject));
        if (grants) grants.push(grant);
        else index.set(keyOf(subject), [grant]);
      }
    }
    return index;
  }

  /** A role that was deleted permits nothing. */
  #rulesOf(role: string): RoleRules {
    return rulesOfRole(this.#snapshot, role) ?? {};
  }
}

const compiledIn = defineView((snapshot) => new Compiled(snapshot));

function isSameToken(before: Token, after: Token): boolean {
  return before.metadata.id === after.metadata.id && equalJson(before.spec, after.spec);
}

function keyOf({ kind, name, provider = '' }: BindingSubject): string {
  return `${kind}/${provider}/${name}`;
}
