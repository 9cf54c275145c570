// Tickets as their bearers see them: a sealed text that says all there is to know, so that any control plane can judge it.

import { createHmac, timingSafeEqual } from 'node:crypto';
import { ApiError } from '../../api/errors.ts';
import { isRecord } from '../../base/is-record.ts';
import type { AccessTicket } from '../../core/operations/access-ticket.ts';

export function sealTicket(secret: Uint8Array, ticket: AccessTicket): string {
  const content = Buffer.from(JSON.stringify(ticket)).toString('base64url');
  return `${content}.${sealOf(secret, content)}`;
}

/** Throws `Unauthenticated`. Whether it was used, or is too old, is not looked at here. */
export function openTicket(secret: Uint8Array, text: string): AccessTicket {
  const [content = '', seal = ''] = text.slice(0, 1024).split('.', 2);
  const right = Buffer.from(sealOf(secret, content));
  const given = Buffer.from(seal);
  if (given.length !== right.length || !timingSafeEqual(given, right))
    throw new ApiError('Unauthenticated', 'this ticket is not from this control plane');
  const value: unknown = JSON.parse(Buffer.from(content, 'base64url').toString());
  if (!isTicket(value)) throw new ApiError('Unauthenticated', 'this ticket is from another version');
  return value;
}

function sealOf(secret: Uint8Array, content: string): string {
  return createHmac('sha256', secret).update(`berth access ticket 1\n${content}`).digest('base64url');
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
