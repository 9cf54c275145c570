// The user's private SSH keys whose public halves the instance was created with. Only public parts are read; no key is
// decrypted or copied.

import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Larger files in ~/.ssh are not keys; known_hosts may be larger. */
const keyBytesMax = 64 * 1024;

/** Paths in `directory` (~/.ssh), sorted by name. */
export async function privateKeysFor(directory: string, publicKeys: readonly string[]): Promise<string[]> {
  const wanted = new Set(publicKeys.map(bare));
  if (wanted.size === 0) return [];
  const names = await readdir(directory).catch((): string[] => []); // missing or unreadable: no keys
  const found: string[] = [];
  for (const name of names.filter((each) => !each.endsWith('.pub')).toSorted()) {
    const path = join(directory, name);
    const text = await smallFile(path);
    if (text === undefined || !text.includes('PRIVATE KEY')) continue;
    const publicKey = publicHalf(text) ?? (await smallFile(`${path}.pub`));
    if (publicKey !== undefined && wanted.has(bare(publicKey))) found.push(path);
  }
  return found;
}

/** Type and key, without the comment. */
function bare(publicKey: string): string {
  return publicKey.trim().split(/\s+/).slice(0, 2).join(' ');
}

async function smallFile(path: string): Promise<string | undefined> {
  try {
    const { size } = await stat(path);
    return size <= keyBytesMax ? await readFile(path, 'utf8') : undefined;
  } catch {
    return undefined; // a socket, a directory, a file of another user: not a key
  }
}

const magic = 'openssh-key-v1\0';

/**
 * OpenSSH's format, PROTOCOL.key: the magic, then strings (length, bytes): cipher, KDF, its options; the number of
 * keys; and the public key unencrypted, which starts with its type. Undefined: another format.
 */
function publicHalf(text: string): string | undefined {
  const [, body] = /-----BEGIN OPENSSH PRIVATE KEY-----([\s\S]*?)-----END/.exec(text) ?? [];
  if (body === undefined) return undefined;
  const bytes = Buffer.from(body, 'base64');
  if (bytes.toString('latin1', 0, magic.length) !== magic) return undefined;
  let at = magic.length;
  const next = (): Buffer => {
    if (at + 4 > bytes.length) return Buffer.alloc(0);
    const length = bytes.readUInt32BE(at);
    at += 4 + length;
    return bytes.subarray(at - length, at);
  };
  for (let skipped = 0; skipped < 3; skipped++) next();
  at += 4;
  const blob = next();
  if (blob.length < 4) return undefined;
  return `${blob.toString('latin1', 4, 4 + blob.readUInt32BE(0))} ${blob.toString('base64')}`;
}
