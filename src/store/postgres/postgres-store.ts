// The store on PostgreSQL: several servers may share one. Commits that come while a batch is under way share the next one, its round trip
// and its fsync; none is answered before that. Entries are not kept in memory; of the log only the newest part is.
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
  /** What follows `postgres:` in the URL. */
  readonly rest: string;
  readonly log?: Logger;
  readonly clock?: Clock;
  readonly prng?: Prng;
  /** Unguessable and never twice the same. */
  readonly randomSecret?: (length: number) => Buffer;
  /** For how long a request outlives a server that is away; default 10 s. */
  readonly patienceMs?: number;
  /** Refuses a schema in which there is no store, instead of making it. */
  readonly mustExist?: boolean;
  /** Default 30 s: a list of a million entries takes some seconds. */
  readonly answerMsMax?: number;
}

/** What one transaction takes at most; the rest waits for the next. */
const batchCommitsMax = 1_024;
const batchBytesMax = 8 * 1024 * 1024;

const connectMsMax = 10_000;

export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const { clock = systemClock, prng = systemPrng(), patienceMs = 10_000, answerMsMax = 30_000 } = options;
  const target = parsePostgresUrl(options.rest);
  const log = (options.log ?? silentLogger).with({ store: `${target.where} ${target.schema}` });
  const session: SessionOptions = { target, clock, connectMsMax: Math.min(connectMsMax, answerMsMax), answerMsMax };
  const patience = { clock, prng, patienceMs };
  // The writer tells the log of this process, which is made once it is known where the store is.
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
        writer.connected().catch(() => undefined); // so that it listens again; commits are told what is wrong, and so is the reader
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
    // Nobody reads these rows any more; what is left of them goes with the next compaction.
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
