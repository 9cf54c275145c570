// Texts that only the servers of this fleet can have written: a value and its HMAC. Anyone can read them, so they hold no secret.

import { createHmac, timingSafeEqual } from 'node:crypto';

export interface Seal {
  /** Of the fleet. */
  readonly secret: Uint8Array;
  /** What the text is for: one of another purpose is refused. */
  readonly purpose: string;
}

export function sealText(seal: Seal, value: unknown): string {
  const content = Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${content}.${sealOf(seal, content)}`;
}

/** Undefined: no server of this fleet wrote it for this purpose. */
export function openSealedText(seal: Seal, text: string): unknown {
  const [content = '', given = ''] = text.slice(0, 1024).split('.', 2);
  const right = Buffer.from(sealOf(seal, content));
  const shown = Buffer.from(given);
  if (shown.length !== right.length || !timingSafeEqual(shown, right)) return undefined;
  const value: unknown = JSON.parse(Buffer.from(content, 'base64url').toString());
  return value;
}

function sealOf({ secret, purpose }: Seal, content: string): string {
  return createHmac('sha256', secret).update(`${purpose}\n${content}`).digest('base64url');
}
