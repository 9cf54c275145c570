// Session: for whom a cookie stands, and until when. It names a token and has none of its secret: the token is looked up at every request,
// so a session ends with its token, and has its rights of that moment.

import { isRecord } from '../../../base/is-record.ts';
import type { Principal } from '../../../core/access/principal.ts';
import { keys } from '../../../core/state/keys.ts';
import type { Snapshot } from '../../../core/state/snapshot.ts';
import { openSealedText, sealText } from '../../sealing/sealed-text.ts';

/** Who can have a session. */
export type SessionPrincipal = Extract<Principal, { kind: 'admin' | 'token' }>;

export interface Session {
  readonly by: SessionPrincipal;
  /** Of the admin token as it was: a session does not outlive its rotation. */
  readonly adminDigest?: string;
  /** Of a link: it is used once. */
  readonly nonce?: string;
  readonly expiresAtMs: number;
}

/** A working day, so that no one has to log in twice in it. */
const sessionMs = 12 * 3_600_000;

/** What a sealed session is for. */
export type SessionPurpose = 'berth session 1' | 'berth session link 1';

/** Undefined: such a caller can have none. */
export function sessionOf(principal: Principal, snapshot: Snapshot, nowMs: number): Session | undefined {
  if (principal.kind === 'token') return { by: principal, expiresAtMs: nowMs + sessionMs };
  const adminDigest = adminDigestIn(snapshot);
  if (principal.kind !== 'admin' || adminDigest === undefined) return undefined;
  return { by: principal, adminDigest, expiresAtMs: nowMs + sessionMs };
}

/** Whether its admin token is still the fleet's; true for other sessions. */
export function isOfPresentAdmin({ by, adminDigest }: Session, snapshot: Snapshot): boolean {
  return by.kind !== 'admin' || (adminDigest !== undefined && adminDigest === adminDigestIn(snapshot));
}

export function sealSession(secret: Uint8Array, purpose: SessionPurpose, session: Session): string {
  return sealText({ secret, purpose }, session);
}

/** Undefined: it is none of this fleet, or of another version. */
export function openSession(secret: Uint8Array, purpose: SessionPurpose, text: string): Session | undefined {
  const value = openSealedText({ secret, purpose }, text);
  return isSession(value) ? value : undefined;
}

function isSession(value: unknown): value is Session {
  if (!isRecord(value) || typeof value['expiresAtMs'] !== 'number' || !isRecord(value['by'])) return false;
  if (value['nonce'] !== undefined && typeof value['nonce'] !== 'string') return false;
  const { kind, name, uid, tokenId } = value['by'];
  if (kind === 'admin') return typeof value['adminDigest'] === 'string';
  return kind === 'token' && [name, uid, tokenId].every((part) => typeof part === 'string');
}

/** The first 32 hexadecimal digits: enough to tell, and no use for guessing. */
function adminDigestIn(snapshot: Snapshot): string | undefined {
  return snapshot.get('cluster', keys.cluster)?.value.operatorDigest?.slice(0, 32);
}
