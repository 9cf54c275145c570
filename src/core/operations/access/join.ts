// A machine becomes a host, and a host gets its next certificate. Certificates are signed before the decision, and given out only when
// it is durable: a serial that the store does not know opens nothing.

import { ApiError } from '../../../api/errors.ts';
import { renewableDays, renewableMs } from '../../../api/joining.ts';
import type { Host } from '../../../api/resources/host.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import { type Change, type Plan, unchanged } from '../../state/plan.ts';
import type { HostCertificate, JoinToken } from '../../state/records.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { schemaVersion } from '../../state/upgrade.ts';
import { newMetadata } from '../create.ts';
import { hostGenerationOf } from './host-generation.ts';

export type SignedCertificate = Required<Omit<HostCertificate['issued'][number], 'used'>>;

interface CertificateInput {
  readonly host: string;
  /** For which the certificate was signed: that of the host, or of the host to be created. */
  readonly hostId: string;
  /** SHA-256 of the public key, hex. */
  readonly keyHash: string;
  readonly signed: SignedCertificate;
}

export interface JoinInput extends CertificateInput {
  /** Of a token whose secret was shown. */
  readonly tokenId: string;
  /** The caller has shown a valid credential of this very host: it may give up a host token for a certificate. */
  readonly isHost: boolean;
}

interface Joined {
  readonly plan: Plan;
  /** PEM; undefined: signed for another host id than the host has by now; sign again. */
  readonly chain: string | undefined;
}

/** Of the certificates before the newest: requests under way, and agents whose answer was lost. */
const issuedMax = 3;
const lostAnswerMs = 10 * 60_000;

/** Throws `Unauthenticated` for a token that is not valid, `Conflict` for a name that this token may not have. */
export function joinHost(snapshot: Snapshot, input: JoinInput, ctx: Context): Joined {
  const { host: name, tokenId, keyHash, hostId } = input;
  const token = snapshot.get('joinToken', keys.joinToken(tokenId));
  const certificates = snapshot.get('hostCertificate', keys.hostCertificate(name));
  const entry = snapshot.get('host', keys.host(name));
  const newest = certificates?.value.issued.at(-1)?.chain;
  if (token?.value.used.includes(name) && certificates?.value.keyHash === keyHash && entry && newest !== undefined)
    return { plan: unchanged(token, certificates, entry), chain: newest }; // its answer was lost
  assertUsable(token, ctx);
  assertName(snapshot, { entry, token, input, nowMs: ctx.nowMs });
  if (entry && entry.value.metadata.id !== hostId) return { plan: unchanged(entry), chain: undefined };
  const host: Host = entry
    ? { ...entry.value, spec: { ...entry.value.spec, ...poolOf(token.value, entry.value) } }
    : newHost(input, token.value, ctx);
  const used: JoinToken = { ...token.value, used: [...token.value.used, name] };
  const event = { reason: 'HostEnrolled', message: `joined with token ${tokenId}`, host: name };
  return {
    plan: {
      changes: [
        { key: token.key, ifRevision: token.revision, value: used },
        { key: keys.host(name), ifRevision: entry?.revision ?? 0, value: host },
        certificateChange(snapshot, input, []),
        eventChange(host, event, ctx),
      ],
      conditions: [{ key: keys.removedHost(name), ifRevision: 0 }, generationCondition(snapshot, name)],
    },
    chain: input.signed.chain,
  };
}

function assertUsable(token: Entry<JoinToken> | undefined, ctx: Context): asserts token is Entry<JoinToken> {
  const refuse = (why: string): ApiError => new ApiError('Unauthenticated', `${why}; have a new one made`);
  if (!token) throw refuse('the join token is not valid');
  if (token.value.expiresAtMs <= ctx.nowMs) throw refuse('the join token has expired');
  if (token.value.used.length >= token.value.usesMax) throw refuse('the join token has been used');
}

/** A token must not become another host, nor bring one back that an operator has removed. */
function assertName(
  snapshot: Snapshot,
  joining: {
    readonly entry: Entry<Host> | undefined;
    readonly token: Entry<JoinToken>;
    readonly input: JoinInput;
    readonly nowMs: number;
  },
): void {
  const { entry, token, input, nowMs } = joining;
  const { host: name, isHost } = input;
  const refuse = (why: string): ApiError => new ApiError('Conflict', `host "${name}" ${why}`, { field: 'host' });
  if (snapshot.get('removedHost', keys.removedHost(name)))
    throw refuse(`has been removed from the fleet; "berth host create ${name}" allows it to return`);
  if (!entry || isHost || cannotRenew(snapshot, input, nowMs)) return;
  if (entry.value.status.agentId !== undefined || snapshot.get('hostCertificate', keys.hostCertificate(name)))
    throw refuse(
      `exists already, and a join token cannot take it over; choose another --name, name its token with --token-file, or remove it with "berth host rm ${name}"`,
    );
  const { pool } = entry.value.spec;
  if (pool !== undefined && pool !== token.value.pool)
    throw refuse(`is in a pool that this join token is not for; make one with --pool ${pool}`);
}

/**
 * It has the key of the host, and its certificate is of an authority that was dropped, or expired too long ago: nothing else can bring the host
 * back.
 */
function cannotRenew(snapshot: Snapshot, { host, keyHash }: JoinInput, nowMs: number): boolean {
  const certificates = snapshot.get('hostCertificate', keys.hostCertificate(host))?.value;
  const newest = certificates?.issued.at(-1);
  if (newest === undefined || certificates?.keyHash !== keyHash) return false;
  return !isTrusted(snapshot, newest.authority) || newest.notAfterMs + renewableMs < nowMs;
}

function poolOf({ pool }: JoinToken, host: Host): { readonly pool?: string } {
  return host.spec.pool === undefined && pool !== undefined ? { pool } : {};
}

function newHost({ host: name, hostId }: JoinInput, { pool, labels }: JoinToken, ctx: Context): Host {
  return {
    kind: 'host',
    schemaVersion,
    metadata: newMetadata(hostId, { project: '', name, labels: { ...labels }, spec: undefined }, ctx),
    spec: { paused: false, allocationRatios: {}, ...(pool === undefined ? {} : { pool }) },
    status: { epoch: 0, drivers: [], images: [], unknownGuests: [], conditions: [] },
  };
}

/** Throws `Unauthenticated` when the key is not that of the host, or its last certificate expired too long ago. */
export function renewCertificate(
  snapshot: Snapshot,
  input: CertificateInput & { readonly lastSerial: string; readonly lastNotAfterMs: number },
  ctx: Context,
): Joined {
  const { host, hostId, keyHash, lastSerial } = input;
  const entry = snapshot.get('host', keys.host(host));
  const certificates = snapshot.get('hostCertificate', keys.hostCertificate(host));
  const stands =
    entry?.value.metadata.id === hostId &&
    certificates?.value.hostId === hostId &&
    certificates.value.keyHash === keyHash &&
    certificates.value.generation === hostGenerationOf(snapshot, host);
  if (!stands || input.lastNotAfterMs + renewableMs < ctx.nowMs)
    throw new ApiError(
      'Unauthenticated',
      stands
        ? `the certificate of host "${host}" expired over ${renewableDays} days ago; join again with "berth agent join", a new join token and the same data directory`
        : `the certificate of host "${host}" is not valid: the host was removed, or has joined again since`,
    );
  const { issued } = certificates.value;
  const newest = issued.at(-1);
  const recent = newest !== undefined && ctx.nowMs - newest.issuedAtMs < lostAnswerMs;
  if (newest?.chain !== undefined && recent && newest.serial !== lastSerial)
    return { plan: unchanged(entry, certificates), chain: newest.chain };
  return {
    plan: {
      changes: [certificateChange(snapshot, input, issued)],
      conditions: [{ key: entry.key, ifRevision: entry.revision }, generationCondition(snapshot, host)],
    },
    chain: input.signed.chain,
  };
}

function certificateChange(
  snapshot: Snapshot,
  { host, hostId, keyHash, signed }: CertificateInput,
  before: HostCertificate['issued'],
): Change {
  const key = keys.hostCertificate(host);
  const kept = before.slice(1 - issuedMax).map(({ chain: _, ...rest }) => rest);
  return {
    key,
    ifRevision: snapshot.get('hostCertificate', key)?.revision ?? 0,
    value: {
      kind: 'hostCertificate',
      host,
      hostId,
      generation: hostGenerationOf(snapshot, host),
      keyHash,
      issued: [...kept, signed],
    },
  };
}

function generationCondition(snapshot: Snapshot, host: string): { readonly key: string; readonly ifRevision: number } {
  const key = keys.hostGeneration(host);
  return { key, ifRevision: snapshot.get('hostGeneration', key)?.revision ?? 0 };
}

/** Whether a certificate with these words opens the routes of its host now. Asked at every request. */
export function certificateStands(
  snapshot: Pick<Snapshot, 'get'>,
  { host, hostId, serial }: { readonly host: string; readonly hostId: string; readonly serial: string },
  nowMs: number,
): boolean {
  const record = snapshot.get('hostCertificate', keys.hostCertificate(host))?.value;
  return (
    record?.hostId === hostId &&
    record.generation === hostGenerationOf(snapshot, host) &&
    record.issued.some(
      (issued) => issued.serial === serial && nowMs < issued.notAfterMs && isTrusted(snapshot, issued.authority),
    ) &&
    snapshot.get('host', keys.host(host))?.value.metadata.id === hostId
  );
}

/** A connection that was made before its authority was dropped is still open. */
function isTrusted(snapshot: Pick<Snapshot, 'get'>, authority: string): boolean {
  const known = snapshot.get('authority', keys.authority)?.value;
  return known === undefined || known.generations.some(({ id }) => id === authority);
}
