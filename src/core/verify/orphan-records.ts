// Records about a part of a host that was removed.

import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import type { Fault, Rule } from './fault.ts';

export const orphanRecords: Rule = function* (snapshot) {
  for (const { key, value } of snapshot.list('provider'))
    if (value.outside === undefined) yield orphanOf(snapshot, 'provider', { key, host: value.host });
  for (const { key, value } of snapshot.list('lease')) yield orphanOf(snapshot, 'lease', { key, host: value.host });
};

function orphanOf(
  snapshot: Snapshot,
  kind: 'provider' | 'lease',
  { key, host }: { readonly key: string; readonly host: string },
): Fault | undefined {
  if (snapshot.get('host', keys.host(host))) return undefined;
  return {
    key: `orphan ${key}`,
    code: 'OrphanRecord',
    subject: `${kind} ${key.slice(key.indexOf('/') + 1)}`,
    host,
    message: `it belongs to host ${host}, which no longer exists`,
    cause: 'its removal with its host was interrupted',
    repair: {
      what: `removes the record ${key}`,
      plan(now) {
        const entry = now.get(kind, key);
        const hostKey = keys.host(host);
        if (!entry || now.get('host', hostKey)) return null;
        return {
          changes: [{ key, ifRevision: entry.revision, value: null }],
          conditions: [{ key: hostKey, ifRevision: 0 }],
        };
      },
    },
  };
}
