// The servers of each fleet that commands have learned, stored beside the contexts: the next command works even when
// the first server is down. It contains no tokens; a file that cannot be read or written only costs time.

import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { KnownServers } from '../api/client/servers.ts';
import { isRecord } from '../base/is-record.ts';

/** `contexts`: the path of their file. */
export function knownServersFile(contexts: string): string {
  return join(dirname(contexts), 'servers.json');
}

/** By the configured addresses: a token is never sent to a server that another fleet has announced. */
export function readKnownServers(path: string, urls: readonly string[]): KnownServers | undefined {
  const known = contentOf(path)[urls.join()];
  if (!isRecord(known) || !Array.isArray(known['learned']) || typeof known['current'] !== 'string') return undefined;
  return { learned: known['learned'].filter((url) => typeof url === 'string'), current: known['current'] };
}

export function writeKnownServers(path: string, urls: readonly string[], known: KnownServers): void {
  const content = JSON.stringify({ ...contentOf(path), [urls.join()]: known }, undefined, 2);
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(`${path}.new`, `${content}\n`, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  } catch {
    // In a read-only home the next command learns the servers again.
  }
}

function contentOf(path: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return isRecord(value) ? value : {};
  } catch {
    return {}; // none yet, or damaged
  }
}
