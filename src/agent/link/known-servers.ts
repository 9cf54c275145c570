// What an agent has learned of the servers of its fleet, beside its state: it is restarted also while the first of them is away.

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { KnownServers } from '../../api/client/servers.ts';
import { isRecord } from '../../base/is-record.ts';
import { describeError, type Logger } from '../../base/log.ts';

interface KnownServersFile {
  /** Undefined: nothing is known, or what is known is of other servers than those that are configured now. */
  read(): KnownServers | undefined;
  /** At once, for it is small and changes seldom. */
  write(known: KnownServers): void;
}

export function knownServersAt(
  path: string,
  { urls, log }: { readonly urls: readonly string[]; readonly log: Logger },
): KnownServersFile {
  const configured = urls.join();
  return {
    read() {
      try {
        const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
        if (!isRecord(value) || value['configured'] !== configured) return undefined;
        const { learned, current } = value;
        if (!Array.isArray(learned) || typeof current !== 'string') return undefined;
        return { learned: learned.filter((url) => typeof url === 'string'), current };
      } catch {
        return undefined; // none yet, or damaged: it is learned again
      }
    },
    write(known) {
      try {
        writeFileSync(`${path}.new`, `${JSON.stringify({ configured, ...known })}\n`, { mode: 0o600 });
        renameSync(`${path}.new`, path);
      } catch (error) {
        log.warn('cannot remember the servers of the fleet', { path, error: describeError(error) });
      }
    },
  };
}
