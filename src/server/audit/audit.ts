// The audit of one server: its log, and all that feeds it. Opened when the store has been read, because the store knows what must be in
// the files.

import { hash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import { keys } from '../../core/state/keys.ts';
import type { Store } from '../../store/store.ts';
import type { Decider } from '../decide.ts';
import type { AuditHead } from './audit-chain.ts';
import { bodyHash } from './audit-entry.ts';
import { AuditHeads } from './audit-heads.ts';
import { AuditLog, type AuditLogOptions } from './audit-log.ts';
import { AuditNotes } from './audit-notes.ts';
import { DoubtfulChanges } from './doubtful-changes.ts';
import { appendMissing, readNotes } from './missing-lines.ts';
import { Refusals } from './refusals.ts';
import type { AuditParts } from './trail.ts';
import { type LogCheck, verifyLog } from './verify-log.ts';

export interface AuditSettings extends Omit<AuditLogOptions, 'server' | 'head' | 'clock' | 'log'> {
  /** Resolves when the copies have arrived. */
  readonly stopCopies?: () => Promise<void>;
}

interface OpenParts {
  readonly decider: Decider;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** Of this control plane. */
  readonly name: string;
  /** Keys the hashes of bodies. */
  readonly secret: string;
}

export interface Audit {
  readonly parts: AuditParts;
  readonly refusals: Refusals;
  /** Compares the files with their chain, with the store and with what this process has written. */
  verify(): Promise<LogCheck & { readonly headSeq: number }>;
  stop(): Promise<void>;
}

/** Throws when the files cannot be written. */
export async function openAudit(
  settings: AuditSettings,
  { decider, store, clock, log: logger, name, secret }: OpenParts,
): Promise<Audit> {
  const { cache } = decider;
  const known = await readNotes(store, name);
  const stored = (): AuditHead | undefined => cache.committed('auditHead', keys.auditHead(name))?.value;
  const log = new AuditLog({ ...settings, server: name, head: newestOf(known.head, stored()), clock, log: logger });
  const nowMs = (): number => Math.floor(clock.nowMs());
  const notes = new AuditNotes({
    server: name,
    last: known.last,
    head: () => log.head,
    nowMs,
    append: (texts, firstNote) => log.appendNow(texts, firstNote),
  });
  log.onDurable = (first, count) => notes.durable(first, count);
  const missing = await appendMissing(log, known);
  if (missing > 0) logger.info('lines of the audit log were made from the store', { lines: missing });
  decider.committer.noteAuthors(notes);
  const heads = new AuditHeads({ decider, audit: log, log: logger });
  heads.start();
  const doubtful = new DoubtfulChanges({ store, clock, log, notes, logger });
  const refusals = new Refusals({ log, clock, snapshot: cache });
  const key = hash('sha256', `berth audit body 1\n${secret}`, 'base64url');
  return {
    parts: { log, notes, doubtful, snapshot: cache, hashBody: (json) => bodyHash(key, json) },
    refusals,
    async verify() {
      await log.settled();
      const inNotes = (await readNotes(store, name)).head;
      const inStore = newestOf(inNotes, stored());
      const all = [log.head, inStore].filter((head) => head !== undefined);
      return { ...(await verifyLog(log.directory, all)), headSeq: inStore?.seq ?? 0 };
    },
    async stop() {
      refusals.stop();
      doubtful.stop();
      await log.settled();
      await heads.stop();
      await log.close();
      await settings.stopCopies?.();
    },
  };
}

function newestOf(a: AuditHead | undefined, b: AuditHead | undefined): AuditHead | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return a.seq > b.seq ? a : b;
}
