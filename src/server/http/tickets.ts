// Tickets as their bearers see them: a sealed text that says all there is to know, so that any control plane can judge it.

import { ApiError } from '../../api/errors.ts';
import { isRecord } from '../../base/is-record.ts';
import type { AccessTicket } from '../../core/operations/access-ticket.ts';
import { openSealedText, sealText } from '../sealing/sealed-text.ts';

const purpose = 'berth access ticket 1';

export function sealTicket(secret: Uint8Array, ticket: AccessTicket): string {
  return sealText({ secret, purpose }, ticket);
}

/** Throws `Unauthenticated`. Whether it was used, or is too old, is not looked at here. */
export function openTicket(secret: Uint8Array, text: string): AccessTicket {
  const value = openSealedText({ secret, purpose }, text);
  if (value === undefined) throw new ApiError('Unauthenticated', 'this ticket is not from this control plane');
  if (!isTicket(value)) throw new ApiError('Unauthenticated', 'this ticket is from another version');
  return value;
}

function isTicket(value: unknown): value is AccessTicket {
  return (
    isRecord(value) &&
    typeof value['nonce'] === 'string' &&
    typeof value['instanceId'] === 'string' &&
    typeof value['incarnation'] === 'number' &&
    typeof value['way'] === 'string' &&
    typeof value['expiresAtMs'] === 'number' &&
    isRecord(value['by'])
  );
}
