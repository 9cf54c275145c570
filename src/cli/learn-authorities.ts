// A context that pins the authority of its fleet follows a rotation: it learns the new authority before the old one is dropped.

import { shortFingerprint } from '../base/tls/fingerprint.ts';
import type { TlsFetch } from '../base/tls/tls-fetch.ts';
import { isRecord } from '../base/is-record.ts';
import { type Context, readContexts, writeContexts } from './context-file.ts';

interface Learning {
  /** The path of the file of contexts. */
  readonly path: string;
  /** The context, which pins `authorities`. */
  readonly context: Context;
  /** The value of the header `berth-authorities`, from a verified server. */
  readonly told: string;
  readonly url: string;
  /** Sends a request, and verifies the server. */
  readonly send: TlsFetch['fetch'];
}

/** Never throws: the request of the command has succeeded, and the next command tries again. */
export async function learnAuthorities({ path, context, told, url, send }: Learning): Promise<void> {
  const pinned = context.authorities ?? '';
  if (told === certificatesIn(pinned).map(shortFingerprint).join()) return;
  try {
    const answer = await send(`${new URL(url).origin}/v1/ca`, { method: 'GET', headers: {} });
    const roots = rootsIn(JSON.parse(await answer.text()));
    if (roots.map(shortFingerprint).join() !== told) return;
    const file = await readContexts(path);
    const contexts = Object.entries(file.contexts).map(([name, each]): [string, Context] => [
      name,
      each.authorities === pinned ? { ...each, authorities: roots.join('\n') } : each,
    ]);
    await writeContexts(path, { ...file, contexts: Object.fromEntries(contexts) });
  } catch {
    // the file cannot be written, or the server is unreachable
  }
}

function rootsIn(answer: unknown): string[] {
  const items: unknown = isRecord(answer) ? answer['items'] : undefined;
  if (!Array.isArray(items)) return [];
  return items.flatMap((item: unknown) => {
    const certificate = isRecord(item) ? item['certificate'] : undefined;
    return typeof certificate === 'string' ? [certificate.trim()] : [];
  });
}

function certificatesIn(pem: string): string[] {
  return pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}
