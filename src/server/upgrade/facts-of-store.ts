// The facts about an upgrade, read directly from the store of stopped servers. Must never write to the store.

import type { UpgradeFacts } from '../../api/upgrade/findings.ts';
import { decodeRecord, UnreadableRecord } from '../../core/state/codec.ts';
import { auditNotesPrefix, kindOfKey } from '../../core/state/keys.ts';
import type { AnyRecord } from '../../core/state/records.ts';
import { schemaVersion } from '../../core/state/upgrade.ts';
import { pagesOf } from '../../store/pages.ts';
import type { Store } from '../../store/store.ts';
import { isSealedRow } from '../sealing/sealed-rows.ts';
import { factsOfHost } from './facts-of-host.ts';

export type StoreFacts = Pick<UpgradeFacts, 'servers' | 'store' | 'hosts'>;

/** Maximum number of reported records. */
const unreadableMax = 20;

/** Encrypted records are not read: `recordsVersion` tells whether the store may contain schema versions that this program does not know. */
export async function factsOfStore(store: Store): Promise<StoreFacts> {
  const servers: StoreFacts['servers'][number][] = [];
  const hosts: StoreFacts['hosts'][number][] = [];
  const unreadable: string[] = [];
  let older = 0;
  let about: Pick<StoreFacts['store'], 'recordsVersion' | 'closed'> = {};
  const take = (record: AnyRecord): void => {
    if (record.kind === 'host') hosts.push(factsOfHost(record));
    if (record.kind === 'member') servers.push(factsOfMember(record));
    if (record.kind === 'cluster')
      about = {
        recordsVersion: record.recordsVersion,
        ...(record.closed === undefined ? {} : { closed: record.closed.why }),
      };
  };
  for await (const page of pagesOf(store)) {
    for (const { key, value } of page.entries) {
      if (key.startsWith(auditNotesPrefix) || kindOfKey(key) === undefined || isSealedRow(value)) continue;
      try {
        take(decodeRecord(key, value));
        if (isOlderForm(value)) older += 1;
      } catch (error) {
        if (!(error instanceof UnreadableRecord)) throw error;
        if (unreadable.length < unreadableMax) unreadable.push(error.message);
      }
    }
  }
  return { servers, hosts, store: { ...about, unreadable, older } };
}

function factsOfMember({ name, version }: Extract<AnyRecord, { kind: 'member' }>): StoreFacts['servers'][number] {
  return { name, ...(version === undefined ? {} : { version }) };
}

/** The stored schema version; decoding raises it. */
function isOlderForm(bytes: Uint8Array): boolean {
  const [, version] = /"schemaVersion":(\d+)/.exec(Buffer.from(bytes).toString('utf8')) ?? [];
  return version !== undefined && Number(version) < schemaVersion;
}
