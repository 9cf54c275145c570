// The authority of a server that is known by its fingerprint only. Nothing but public certificates crosses this one connection, on which
// the server is not verified; what does not have the fingerprint is never trusted.

import { X509Certificate } from 'node:crypto';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { isRecord } from '../is-record.ts';
import { fingerprintOf } from './fingerprint.ts';

const fingerprintForm = /^(?:sha256:)?([0-9a-f]{64})$/i;
const answerBytesMax = 256 * 1024;

/** `sha256:` and 64 lower-case hex digits, of `AB:CD:...` too; undefined: this is no SHA-256 fingerprint. */
export function fingerprintIn(text: string): string | undefined {
  const digits = fingerprintForm.exec(text.trim().replace(/(?<=[0-9a-f]{2}):(?=[0-9a-f]{2}(:|$))/gi, ''))?.[1];
  return digits === undefined ? undefined : `sha256:${digits.toLowerCase()}`;
}

/** PEM of the root certificate. Throws an `Error` that says what to do when the server has another. */
export async function pinnedAuthority(
  serverUrl: string,
  fingerprint: string,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<string> {
  const roots = certificatesIn(await answerOf(`${serverUrl}/v1/ca`, signal));
  const root = roots.find((pem) => fingerprintOf(pem) === fingerprint);
  if (root !== undefined) return root;
  const found = roots.length === 0 ? 'none' : roots.map(fingerprintOf).join(', ');
  throw new Error(
    `its authority is ${found}, and ${fingerprint} was expected: another server answers there, or its authority was changed; compare with what "berth server" logs at its start`,
  );
}

function answerOf(url: string, signal: AbortSignal | undefined): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { agent: false, rejectUnauthorized: false, ...(signal ? { signal } : {}) } as const;
    const asked = request(url, options, (response) => {
      let bytes = 0;
      response.on('data', (piece: Buffer) => {
        bytes += piece.length;
        if (bytes > answerBytesMax) asked.destroy(new Error('its answer is too long'));
      });
      text(response).then(resolve, reject);
    });
    asked.once('error', reject);
    asked.end();
  });
}

function certificatesIn(answer: string): string[] {
  let value: unknown;
  try {
    value = JSON.parse(answer);
  } catch {
    return []; // not a Berth server
  }
  const items = isRecord(value) && Array.isArray(value['items']) ? value['items'] : [];
  return items.flatMap((item: unknown) => {
    const pem = isRecord(item) ? item['certificate'] : undefined;
    try {
      return typeof pem === 'string' ? [new X509Certificate(pem).toString()] : [];
    } catch {
      return [];
    }
  });
}
