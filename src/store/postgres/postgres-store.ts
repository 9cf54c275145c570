// The store on PostgreSQL: several servers may share one. Commits that arrive while a batch is in progress share the next batch, its round
// trip and its fsync; none is answered before that. Entries are not kept in memory; of the log only the newest part is.
//
//   commit ──▶ queue ── batch ──▶ writer ── answers ──▶ log of this process ──▶ watchers
//   others' commits ── NOTIFY, or a look once a second ──▶ reader ──╯

import type { Clock } from '../../base/clock.ts';
import { type Logger, silentLogger } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import { randomSecret, systemClock, systemPrng } from '../../base/system.ts';
import { checkCommit, checkCompact, checkKey, checkList } from '../check-request.ts';
import { GroupCommit } from '../group-commit.ts';
import { SharedLog } from '../shared-log.ts';
import {
  type CommitResult,
  type Condition,
  type Entry,
  type Key,
  type Listed,
  type ListOptions,
  type Revision,
  type Store,
  StoreError,
  type WatchEvent,
  type Write,
} from '../store.ts';
import { commitRequest } from './commit-batch.ts';
import { toStoreError } from './postgres-errors.ts';
import { PostgresReader } from './postgres-reader.ts';
import type { SessionOptions } from './postgres-session.ts';
import { parsePostgresUrl } from './postgres-url.ts';
import { PostgresWriter, type WaitingCommit } from './postgres-writer.ts';

export interface PostgresStoreOptions {
  /** The part of the URL after `postgres:`. */
  readonly rest: string;
  readonly log?: Logger;
  readonly clock?: Clock;
  readonly prng?: Prng;
  /** Unpredictable and unique. */
  readonly randomSecret?: (length: number) => Buffer;
  /** How long a request is retried while the server is unavailable; default 10 s. */
  readonly patienceMs?: number;
  /** Refuses a schema without a store instead of creating one. */
  readonly mustExist?: boolean;
  /** Default 30 s: a list of a million entries takes some seconds. */
  readonly answerMsMax?: number;
}

/** Limits of a transaction; the rest waits for the next one. */
const batchCommitsMax = 1_024;
const batchBytesMax = 8 * 1024 * 1024;

const connectMsMax = 10_000;

export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { clock = systemClock, prng = systemPrng(), patienceMs = 10_000, answerMsMax = 30_000 } = options;
  const target = parsePostgresUrl(options.rest);
  const log = (options.log ?? silentLogger).with({ store: `${target.where} ${target.schema}` });
  const session: SessionOptions = { target, clock, connectMsMax: Math.min(connectMsMax, answerMsMax), answerMsMax };
  const patience = { clock, prng, patienceMs };
  // The writer passes its commits to the shared log, which is created once the revision of the store is known.
  let shared: SharedLog | undefined;
  const writer = new PostgresWriter({
    ...patience,
    session,
    log,
    mustExist: options.mustExist ?? false,
    randomSecret: options.randomSecret ?? randomSecret,
    onCommitted: (commits) => shared?.committed(commits),
    onNotice: (revision) => shared?.heard(revision),
  });
  const reader = new PostgresReader({ ...patience, session });
  try {
    await writer.connected();
    const state = await reader.open();
    shared = new SharedLog({
      ...state,
      clock,
      read: (after) => {
        writer.connected().catch(() => undefined); // so that it listens again; commits and the reader report errors themselves
        return reader.history(after);
      },
      onLost: (error) => log.error('log cannot be read', { code: error.code, cause: error.message }),
    });
    return new PostgresStore({ writer, reader, shared });
  } catch (error) {
    await Promise.all([writer.close(), reader.close()]);
    throw toStoreError(error, { attempted: 'opening the store', where: target.where });
  }
}

class PostgresStore implements Store {
  readonly #writer: PostgresWriter;
  readonly #reader: PostgresReader;
  readonly #shared: SharedLog;
  readonly #commits: GroupCommit<WaitingCommit>;
  #closing: Promise<void> | null = null;

  constructor(opened: { writer: PostgresWriter; reader: PostgresReader; shared: SharedLog }) {
    this.#writer = opened.writer;
    this.#reader = opened.reader;
    this.#shared = opened.shared;
    this.#commits = new GroupCommit({
      commitsMax: batchCommitsMax,
      bytesMax: batchBytesMax,
      bytesOf: ({ events }) => events.byteLength,
      write: (batch) => this.#writer.write(batch),
    });
  }

  async get(key: Key): Promise<Entry | null> {
    checkKey(key);
    this.#assertOpen(`get of "${key}"`);
    return this.#reader.get(key);
  }

  async list(prefix: string, options: ListOptions = {}): Promise<Listed> {
    checkList(prefix, options);
    this.#assertOpen(`list of "${prefix}"`);
    return this.#reader.list(prefix, options);
  }

  async commit(conditions: readonly Condition[], writes: readonly Write[]): Promise<CommitResult> {
    checkCommit(conditions, writes);
    this.#assertOpen('commit');
    return new Promise((resolve, reject) => {
      this.#commits.add({ ...commitRequest(conditions, writes), resolve, reject });
    });
  }

  watch(prefix: string, after: Revision, signal: AbortSignal): AsyncIterable<readonly WatchEvent[]> {
    return this.#shared.watch(prefix, after, signal);
  }

  async compact(before: Revision): Promise<void> {
    this.#assertOpen('compaction');
    const { revision, compacted } = await this.#reader.state('compaction');
    checkCompact(before, revision);
    if (before <= compacted) return;
    await this.#reader.setCompacted(before);
    if (!this.#closing) await this.#shared.refresh();
    // These rows are unused; the next compaction deletes the rest.
    await this.#reader.forget(before, () => !this.#closing);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#commits.settled();
    await this.#shared.close();
    await Promise.all([this.#writer.close(), this.#reader.close()]);
  }

  #assertOpen(attempted: string): void {
    if (this.#closing) throw new StoreError('Closed', `${attempted} refused: the store was closed`);
  }
}
