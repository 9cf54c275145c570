// The authority of the fleet is replaced: a new one is added and issues the certificates of hosts, and the old one is dropped when all hosts
// have a certificate of the new one. Both are trusted meanwhile. Servers show certificates of the old one until it is dropped, because
// clients that pinned it know no other at first.
//
//   [old] ── begin ──▶ [old, new], hosts renew ── finish ──▶ [new]

import { ApiError } from '../../../api/errors.ts';
import type { AuthorityHost } from '../../../api/trust/authority.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import { emptyPlan, type Plan } from '../../state/plan.ts';
import type { Authority, AuthorityGeneration, HostCertificate } from '../../state/records.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { issuingOf } from './authority.ts';

interface Rotated {
  readonly key: string;
  readonly plan: Plan;
  readonly authority: Authority;
}

/** Throws `NotFound` when the fleet has no authority, `Conflict` when a rotation is under way. */
export function beginRotation(
  snapshot: Snapshot,
  { made, overlapMs }: { readonly made: AuthorityGeneration; readonly overlapMs: number },
  ctx: Context,
): Rotated {
  const entry = authorityIn(snapshot);
  if (entry.value.rotation !== undefined)
    throw new ApiError('Conflict', 'the authority is being rotated already; "berth ca status" shows how far it is');
  return changed(entry, {
    ...entry.value,
    generations: [...entry.value.generations, made],
    issuing: made.id,
    rotation: { startedAtMs: ctx.nowMs, finishAfterMs: ctx.nowMs + overlapMs },
  });
}

/**
 * Drops the old authority. Throws `Conflict` when there is no rotation and, without `force`, while a host has no certificate of the new one or
 * the time of the overlap is not over: such hosts must join again, and such clients pin the new fingerprint.
 */
export function finishRotation(snapshot: Snapshot, { force }: { readonly force: boolean }, ctx: Context): Rotated {
  const entry = authorityIn(snapshot);
  const { rotation } = entry.value;
  if (rotation === undefined) throw new ApiError('Conflict', 'no rotation of the authority is under way');
  const late = force ? [] : authorityHosts(snapshot).filter(({ state }) => state === 'old');
  if (late.length > 0) {
    const names = late.slice(0, 5).map(({ host }) => host);
    const more = late.length > names.length ? `, and ${late.length - names.length} more` : '';
    throw new ApiError(
      'Conflict',
      `hosts have not renewed their certificates yet: ${names.join(', ')}${more}; wait for them, remove them, or finish with --force: they must join again then`,
    );
  }
  if (!force && ctx.nowMs < rotation.finishAfterMs)
    throw new ApiError(
      'Conflict',
      `both authorities are trusted until ${new Date(rotation.finishAfterMs).toISOString()}, so that every client learns of the new one; wait, or finish with --force: other clients must pin the new fingerprint then`,
    );
  const issuing = issuingOf(entry.value);
  return changed(entry, { kind: 'authority', generations: [issuing], issuing: issuing.id });
}

/** What each host with a certificate, or with a host token, proves itself with. */
export function authorityHosts(snapshot: Snapshot): AuthorityHost[] {
  const authority = snapshot.get('authority', keys.authority)?.value;
  return [...snapshot.list('host')]
    .filter(({ value }) => value.status.agentId !== undefined || certificateOf(snapshot, value.metadata.name))
    .map(({ value: { metadata } }): AuthorityHost => {
      const newest = certificateOf(snapshot, metadata.name)?.value.issued.at(-1);
      if (newest === undefined || authority === undefined) return { host: metadata.name, state: 'token' };
      const state = isCurrent(authority, newest) && newest.used === true ? 'new' : 'old';
      return { host: metadata.name, state, notAfterMs: newest.notAfterMs };
    })
    .toSorted((a, b) => (a.host < b.host ? -1 : 1));
}

/** Whether a host must renew its certificate before that is due: it has not been given the present authorities. */
export function renewsForAuthority(snapshot: Pick<Snapshot, 'get'>, host: string): boolean {
  const authority = snapshot.get('authority', keys.authority)?.value;
  const newest = certificateOf(snapshot, host)?.value.issued.at(-1);
  return authority !== undefined && newest !== undefined && !isCurrent(authority, newest);
}

/**
 * A host has shown the certificate with this serial, and so has got the answer that came with it. Empty for one that is known to be in use, or
 * that is not the newest.
 */
export function noteCertificateUsed(
  snapshot: Snapshot,
  { host, serial }: { readonly host: string; readonly serial: string },
): { readonly plan: Plan } {
  const entry = certificateOf(snapshot, host);
  const newest = entry?.value.issued.at(-1);
  if (entry === undefined || newest === undefined || !isUnusedYet(newest, serial)) return { plan: emptyPlan };
  const issued = [...entry.value.issued.slice(0, -1), { ...newest, used: true as const }];
  return {
    plan: { changes: [{ key: entry.key, ifRevision: entry.revision, value: { ...entry.value, issued } }] },
  };
}

/** Whether `noteCertificateUsed` would change anything. */
export function isNewlyUsed(snapshot: Pick<Snapshot, 'get'>, host: string, serial: string): boolean {
  const newest = certificateOf(snapshot, host)?.value.issued.at(-1);
  return newest !== undefined && isUnusedYet(newest, serial);
}

type Issued = HostCertificate['issued'][number];

function isUnusedYet(newest: Issued, serial: string): boolean {
  return newest.serial === serial && newest.used !== true;
}

/** Whether it is of the authority that issues, and was given with exactly those that are trusted. One of an earlier version says none. */
function isCurrent({ generations, issuing }: Authority, { authority, trusts = [authority] }: Issued): boolean {
  return (
    authority === issuing && trusts.length === generations.length && generations.every(({ id }, i) => trusts[i] === id)
  );
}

function certificateOf(snapshot: Pick<Snapshot, 'get'>, host: string): Entry<HostCertificate> | undefined {
  return snapshot.get('hostCertificate', keys.hostCertificate(host));
}

function authorityIn(snapshot: Snapshot): Entry<Authority> {
  const entry = snapshot.get('authority', keys.authority);
  if (entry) return entry;
  throw noAuthority();
}

export function noAuthority(): ApiError {
  return new ApiError(
    'NotFound',
    'this fleet has no certificate authority, because none of its servers uses TLS; start a server with --tls',
  );
}

function changed(entry: Entry<Authority>, authority: Authority): Rotated {
  const change = { key: entry.key, ifRevision: entry.revision, value: authority };
  return { key: entry.key, plan: { changes: [change] }, authority };
}
