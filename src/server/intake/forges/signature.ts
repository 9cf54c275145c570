// The signature of a webhook: an HMAC with the secret of its hook over the bytes as they came. Which header counts is told by
// the configured forge, never by the headers that are there: Forgejo sends those of GitHub too.

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Forge } from '../../../core/operations/jobs/webhook-event.ts';

type Headers = Readonly<Record<string, string | undefined>>;

export interface ForgeHeaders {
  readonly event: string;
  readonly delivery: string;
  readonly signature: string;
  readonly signatureForm: RegExp;
}

export const forgeHeaders: Readonly<Record<Forge, ForgeHeaders>> = {
  github: {
    event: 'x-github-event',
    delivery: 'x-github-delivery',
    signature: 'x-hub-signature-256',
    signatureForm: /^sha256=([0-9a-f]{64})$/i,
  },
  forgejo: {
    event: 'x-forgejo-event',
    delivery: 'x-forgejo-delivery',
    signature: 'x-forgejo-signature',
    signatureForm: /^([0-9a-f]{64})$/i,
  },
};

const none = Buffer.alloc(32);

/** In constant time: a signature that is missing or of another form is compared as well. */
export function isSigned(
  body: Uint8Array,
  { forge, secret }: { readonly forge: Forge; readonly secret: Uint8Array },
  headers: Headers,
): boolean {
  const { signature, signatureForm } = forgeHeaders[forge];
  const hex = signatureForm.exec(headers[signature] ?? '')?.[1];
  const own = createHmac('sha256', secret).update(body).digest();
  const equal = timingSafeEqual(own, hex === undefined ? none : Buffer.from(hex, 'hex'));
  return equal && hex !== undefined;
}
