// What users do with tokens. Their texts are made and hashed outside: nothing here ever sees one.

import { ApiError } from '../../../api/errors.ts';
import type { Labels } from '../../../api/resources/metadata.ts';
import type { Token, TokenSpec } from '../../../api/resources/token.ts';
import { assertMay, assertMayOn } from '../../access/may.ts';
import { describePrincipal, type Principal } from '../../access/principal.ts';
import { boundToToken, ownersMax, rightsOf, rulesOfRole } from '../../access/rights-of.ts';
import { isLogin, ownersOf, standingOf } from '../../access/standing.ts';
import { assertWithinOwn, isFleetAdmin } from '../../access/within-own.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Plan } from '../../state/plan.ts';
import type { Credential } from '../../state/records.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { schemaVersion } from '../../state/upgrade.ts';
import { assertFree, newMetadata } from '../create.ts';
import type { Decision } from '../decision.ts';
import { existing, replacedMetadata } from '../replace.ts';

/** The public part of a token's text, and the SHA-256 of the text. */
export type TokenProof = Pick<Credential, 'tokenId' | 'digest'>;

export interface NewToken {
  readonly name: string;
  readonly labels?: Labels;
  readonly spec: TokenSpec;
  readonly proof: TokenProof;
}

/** How long a token lasts: default 90 days. */
export interface Lifetime {
  readonly expiresInSec?: number | undefined;
  /** For fleet administrators only. */
  readonly neverExpires?: boolean | undefined;
}

export interface TokenRequest extends Lifetime {
  readonly name: string;
  readonly labels: Labels;
  readonly description: string;
  readonly role?: string | undefined;
  readonly project?: string | undefined;
  readonly proof: TokenProof;
}

const defaultLifeMs = 90 * 86_400_000;

/** A token as given. The caller has checked that it may be made. Throws `AlreadyExists`. */
export function issueToken(snapshot: Snapshot, { name, labels = {}, spec, proof }: NewToken, ctx: Context): Decision {
  const key = keys.token(name);
  assertFree(snapshot, 'token', key, name);
  const metadata = newMetadata(ctx.newId('tok'), { project: '', name, labels, spec }, ctx);
  const token: Token = { kind: 'token', schemaVersion, metadata, spec, status: { tokenId: proof.tokenId } };
  const credential: Credential = { kind: 'credential', ...proof, token: name, uid: metadata.id };
  return {
    plan: {
      changes: [
        { key, ifRevision: 0, value: token },
        { key: keys.credential(proof.tokenId), ifRevision: 0, value: credential },
      ],
    },
    key,
    changed: true,
  };
}

/** A token for a service, which never permits more than its maker has. Throws `Forbidden`. */
export function createToken(snapshot: Snapshot, principal: Principal, input: TokenRequest, ctx: Context): Decision {
  const { name, labels, description, role, project, proof } = input;
  assertMay(snapshot, principal, { verb: 'issue-token', resource: 'token', project });
  if (role !== undefined) assertMayGive(snapshot, principal, { role, project });
  assertNothingBound(snapshot, principal, name);
  const maker = makerOf(snapshot, principal);
  const spec: TokenSpec = {
    description,
    ...(role === undefined ? {} : { role }),
    ...(project === undefined ? {} : { project }),
    ...maker.fields,
    ...expiryOf(snapshot, principal, input, ctx),
  };
  const issued = issueToken(snapshot, { name, labels, spec, proof }, ctx);
  return { ...issued, plan: { ...issued.plan, conditions: maker.conditions } };
}

/** Throws `InvalidRequest` for an unknown role, and `Forbidden` for one that permits more than the principal has. */
function assertMayGive(
  snapshot: Snapshot,
  principal: Principal,
  { role, project }: { readonly role: string; readonly project: string | undefined },
): void {
  const rules = rulesOfRole(snapshot, role);
  if (rules === undefined) throw unknownRole(role, 'role');
  assertWithinOwn(snapshot, principal, { rules, project }, 'role');
}

export function unknownRole(role: string, field: string): ApiError {
  return new ApiError('InvalidRequest', `there is no role "${role}"; "berth role ls" shows them`, { field });
}

/** A binding may still name a token that was revoked: a new one of its name has what it gives. */
export function assertNothingBound(snapshot: Snapshot, principal: Principal, name: string): void {
  for (const grant of boundToToken(snapshot, name)) assertWithinOwn(snapshot, principal, grant, 'name');
}

export interface Maker {
  /** On whom the new token depends. */
  readonly fields: Pick<TokenSpec, 'owner' | 'user'>;
  /** The maker must still be there when it is written: it may have been revoked on another server. */
  readonly conditions: NonNullable<Plan['conditions']>;
}

/** A login is only a way in of its user: tokens that it makes depend on the user, and outlive the login. */
export function makerOf(snapshot: Snapshot, principal: Principal): Maker {
  if (principal.kind === 'admin') return { fields: {}, conditions: [] };
  const entry = principal.kind === 'token' ? snapshot.get('token', keys.token(principal.name)) : undefined;
  if (principal.kind !== 'token' || entry?.value.metadata.id !== principal.uid)
    throw new ApiError('Forbidden', `${describePrincipal(principal)} cannot make tokens`);
  const { user, share } = entry.value.spec;
  if (share !== undefined) throw new ApiError('Forbidden', 'a share cannot make tokens');
  if (ownersOf(entry.value, (key) => snapshot.get('token', key)) >= ownersMax)
    throw new ApiError('Forbidden', `tokens that make tokens go ${ownersMax} deep; make it with another one`);
  const owner = { name: principal.name, id: principal.uid };
  return {
    fields: { ...(user ? { user } : {}), ...(isLogin(entry.value.spec) ? {} : { owner }) },
    conditions: [{ key: entry.key, ifRevision: entry.revision }],
  };
}

/** Throws `InvalidRequest` for a time after the maker's own, and `Forbidden` for "never". */
export function expiryOf(
  snapshot: Snapshot,
  principal: Principal,
  { expiresInSec, neverExpires = false, defaultMs = defaultLifeMs }: Lifetime & { readonly defaultMs?: number },
  ctx: Context,
): Pick<TokenSpec, 'expiresAtMs'> {
  if (neverExpires) {
    if (expiresInSec !== undefined)
      throw new ApiError('InvalidRequest', 'give expiresInSec or neverExpires, not both', { field: 'neverExpires' });
    if (isFleetAdmin(snapshot, principal)) return {};
    throw new ApiError('Forbidden', 'only fleet administrators make tokens that never expire', {
      field: 'neverExpires',
    });
  }
  const expiresAtMs = ctx.nowMs + (expiresInSec === undefined ? defaultMs : expiresInSec * 1000);
  const latestMs = latestExpiryOf(snapshot, principal);
  if (expiresAtMs <= latestMs) return { expiresAtMs };
  if (expiresInSec === undefined) return { expiresAtMs: latestMs };
  throw new ApiError(
    'InvalidRequest',
    `${describePrincipal(principal)} expires earlier itself, in ${Math.max(0, Math.floor((latestMs - ctx.nowMs) / 1000))} s; give a shorter time`,
    { field: 'expiresInSec' },
  );
}

/** A token that a login makes depends on the user only. */
function latestExpiryOf(snapshot: Snapshot, principal: Principal): number {
  const token = principal.kind === 'token' ? snapshot.get('token', keys.token(principal.name))?.value : undefined;
  if (token && isLogin(token.spec)) return Number.POSITIVE_INFINITY;
  return rightsOf(principal, snapshot).expiresAtMs;
}

export interface Extension extends Lifetime {
  readonly name: string;
  readonly ifRevision?: number | undefined;
}

/** A later end, or an earlier one. A principal extends only tokens whose rights it has itself, and never the token that it uses. */
export function extendToken(snapshot: Snapshot, principal: Principal, input: Extension, ctx: Context): Decision {
  const key = keys.token(input.name);
  const entry = existing(snapshot, 'token', key, input.ifRevision);
  const { metadata, spec } = entry.value;
  assertMayExtend(snapshot, principal, entry, ctx);
  const { expiresAtMs: _before, ...rest } = spec;
  const lifetime = spec.share ? { ...input, defaultMs: shareLifeMs } : input;
  const changed = { ...rest, ...expiryOf(snapshot, principal, lifetime, ctx) };
  assertNotAfterOwner(snapshot, changed);
  const token: Token = {
    ...entry.value,
    metadata: replacedMetadata(metadata, { labels: metadata.labels, specChanged: true }),
    spec: changed,
  };
  return { plan: { changes: [{ key, ifRevision: entry.revision, value: token }] }, key, changed: true };
}

/** How long a share lasts unless something else is asked for. */
export const shareLifeMs = 2 * 3_600_000;

function assertMayExtend(snapshot: Snapshot, principal: Principal, { value: token }: Entry<Token>, ctx: Context): void {
  const { metadata, spec } = token;
  // A principal that may end a share may extend it, if it has the rights that the share gives.
  assertMayOn(snapshot, principal, spec.share ? 'delete' : 'update', token);
  if (principal.kind === 'token' && principal.uid === metadata.id)
    throw new ApiError('Forbidden', 'a token cannot extend itself; use another one');
  if (isLogin(token.spec))
    throw new ApiError('Conflict', `"${metadata.name}" is a login; log in again with "berth login"`);
  if (standingOf(token, ctx.nowMs, (key) => snapshot.get('token', key)) !== 'valid')
    throw new ApiError('Conflict', `token "${metadata.name}" has expired already; create another`);
  const { role, project, share } = spec;
  if (role !== undefined)
    assertWithinOwn(snapshot, principal, { rules: rulesOfRole(snapshot, role) ?? {}, project }, 'name');
  assertNothingBound(snapshot, principal, metadata.name);
  const instance = share && snapshot.instanceById(share.instanceId)?.value;
  for (const verb of share?.verbs ?? []) if (instance) assertMayOn(snapshot, principal, verb, instance);
}

function assertNotAfterOwner(snapshot: Snapshot, { owner, expiresAtMs = Number.POSITIVE_INFINITY }: TokenSpec): void {
  const token = owner && snapshot.get('token', keys.token(owner.name))?.value;
  const latestMs = token?.spec.expiresAtMs;
  if (latestMs === undefined || expiresAtMs <= latestMs) return;
  throw new ApiError(
    'InvalidRequest',
    `token "${owner?.name ?? ''}", which made it, expires earlier; extend that first`,
    {
      field: 'expiresInSec',
    },
  );
}

/** The token opens nothing from this commit on. Throws `NotFound` and `RevisionMismatch`. */
export function revokeToken(
  snapshot: Snapshot,
  { name, ifRevision }: { readonly name: string; readonly ifRevision?: number },
): Decision {
  const key = keys.token(name);
  const token = existing(snapshot, 'token', key, ifRevision);
  const credential = snapshot.get('credential', keys.credential(token.value.status.tokenId));
  return {
    plan: {
      changes: [
        { key, ifRevision: token.revision, value: null },
        ...(credential ? [{ key: credential.key, ifRevision: credential.revision, value: null }] : []),
      ],
    },
    key,
    changed: true,
  };
}

/** When tokens were used: one write for all of them. Those that are gone are left out. */
export function noteTokenUses(
  snapshot: Snapshot,
  uses: ReadonlyMap<string, { readonly uid: string; readonly atMs: number }>,
): { readonly plan: Plan } {
  const changes = [...uses].flatMap(([name, { uid, atMs }]) => {
    const entry = snapshot.get('token', keys.token(name));
    if (entry?.value.metadata.id !== uid || (entry.value.status.lastUsedAtMs ?? 0) >= atMs) return [];
    const status = { ...entry.value.status, lastUsedAtMs: atMs };
    return [{ key: entry.key, ifRevision: entry.revision, value: { ...entry.value, status } }];
  });
  return { plan: { changes } };
}
