// The writing side: one connection, one statement and one transaction for each batch of commits; the same connection receives the
// notifications of other servers. When it breaks during a batch, the outcome is determined before anything else is sent: nothing is
// committed twice.
//
//   send ──▶ answer ──▶ reported
//     ╰─ broken ──▶ connect, end the old session ──▶ found in the log ──▶ reported
//           ╰─ not in time: 'unknown'                 ╰─ not there ──▶ send

import { assert } from '../../base/assert.ts';
import { type Logger, describeError } from '../../base/log.ts';
import type { LoggedCommit } from '../shared-log.ts';
import { type CommitResult, type Revision, StoreError } from '../store.ts';
import { type CommitRequest, decodeOutcome, encodeBatch, encodeOne, loggedCommit } from './commit-batch.ts';
import { Patience, type PatienceOptions } from './patience.ts';
import { breaksConnection, toStoreError, withUnknownOutcome } from './postgres-errors.ts';
import { channelOf, listenersOf, migrate, revisionOf } from './postgres-schema.ts';
import { PostgresSession, type Query, type SessionOptions } from './postgres-session.ts';

export interface WaitingCommit extends CommitRequest {
  readonly resolve: (result: CommitResult) => void;
  readonly reject: (error: unknown) => void;
}

export interface WriterOptions extends PatienceOptions {
  readonly session: SessionOptions;
  readonly log: Logger;
  readonly mustExist: boolean;
  readonly randomSecret: (length: number) => Buffer;
  /** Called before the requests are answered. */
  readonly onCommitted: (commits: readonly LoggedCommit[]) => void;
  /** The store has reached this revision. */
  readonly onNotice: (revision: Revision) => void;
}

/** A batch that was sent: its commits are in the log above `after`, under this name. */
interface Sent {
  readonly batch: string;
  readonly after: Revision;
}

export class PostgresWriter {
  readonly #options: WriterOptions;
  readonly #session: PostgresSession;
  /** Eight bytes unique to this writer; as a number they are the lock that its session holds. */
  readonly #name: string;
  #batches = 0;
  /** The revision last seen on this connection. */
  #revision: Revision = 0;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#name = options.randomSecret(8).toString('hex');
    this.#session = new PostgresSession({
      ...options.session,
      prepare: (query) => this.#prepare(query),
      onNotification: (payload) => options.onNotice(Number(payload)),
    });
  }

  /** Connects if necessary, and migrates the schema. */
  async connected(): Promise<void> {
    await this.#session.connected();
  }

  /** Answers every request of the batch. */
  async write(batch: readonly WaitingCommit[]): Promise<void> {
    const patience = new Patience(this.#options);
    let waiting = batch;
    let sent: Sent | undefined;
    for (;;) {
      try {
        await this.#session.connected();
        if (sent) waiting = await this.#lookUp(sent, waiting);
        sent = undefined;
        if (waiting.length === 0) return;
        sent = { batch: this.#newBatch(), after: this.#revision };
        await this.#send(sent.batch, waiting).catch((error: unknown) => {
          if (!breaksConnection(error)) sent = undefined; // the server reported a failure, so it was rolled back
          throw error;
        });
        return;
      } catch (error) {
        if (await patience.allows(error)) continue;
        const failure = toStoreError(error, { attempted: 'commit', where: this.#options.session.target.where });
        const outcome = sent ? withUnknownOutcome(failure) : failure;
        this.#options.log.error('commit failed', {
          code: outcome.code,
          outcome: outcome.outcome,
          cause: describeError(error),
        });
        for (const { reject } of waiting) reject(outcome);
        return;
      }
    }
  }

  /** Resolves when the connection is closed. */
  async close(): Promise<void> {
    await this.#session.close();
  }

  async #send(batch: string, waiting: readonly WaitingCommit[]): Promise<void> {
    const { schema } = this.#options.session.target;
    const one = encodeOne(waiting);
    const [[answer] = []] = await this.#session.query(
      one
        ? {
            name: 'commit-one',
            text: `SELECT ${schema}.commit_one_1($1, $2, $3, $4, $5, $6, $7, $8)`,
            values: [batch, ...one],
            rowMode: 'array',
          }
        : {
            name: 'commit',
            text: `SELECT ${schema}.commit_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
            values: [batch, ...encodeBatch(waiting)],
            rowMode: 'array',
          },
    );
    assert(Array.isArray(answer), 'the function of the commit answers an array');
    const { revision, results, commits } = decodeOutcome(waiting, answer.map(Number));
    this.#revision = revision;
    this.#options.onCommitted(commits);
    for (const [i, result] of results.entries()) waiting[i]?.resolve(result);
  }

  /**
   * Answers the requests that were committed and returns the others, which had no effect: their conditions are checked
   * again. The old session has ended (`#prepare`), so none of them can be committed later.
   */
  async #lookUp(sent: Sent, waiting: readonly WaitingCommit[]): Promise<readonly WaitingCommit[]> {
    const { schema, where } = this.#options.session.target;
    const rows = await this.#session.query({
      text: `SELECT revision, request, absent FROM ${schema}.log WHERE revision > $1 AND batch = $2 ORDER BY revision`,
      values: [sent.after, sent.batch],
      rowMode: 'array',
    });
    const [[compacted] = []] = await this.#session.query(`SELECT compacted FROM ${schema}.state`); // after: rows are deleted once it says so
    if (sent.after + 1 < Number(compacted))
      throw new StoreError('Unavailable', `commit failed on ${where}: its outcome has been compacted in the meantime`);
    const made = new Map<number, { revision: Revision; absent: readonly unknown[] }>();
    for (const [revision, request, absent] of rows)
      made.set(Number(request) - 1, { revision: Number(revision), absent: Array.isArray(absent) ? absent : [] });
    this.#options.log.warn('determined the outcome of a commit', { asked: waiting.length, happened: made.size });
    this.#options.onCommitted(
      [...made].map(([request, { revision, absent }]) =>
        loggedCommit({ revision, writes: waiting[request]?.writes ?? [], absent: (write) => absent.includes(write) }),
      ),
    );
    return waiting.filter(({ resolve }, request) => {
      const revision = made.get(request)?.revision;
      if (revision !== undefined) resolve({ ok: true, revision });
      return revision === undefined;
    });
  }

  /**
   * A session holds a lock that names this writer. Another holder is the previous session of this writer, which may
   * still execute the last batch: it is terminated and awaited. The state is read after that.
   */
  async #prepare(query: Query): Promise<void> {
    const { target } = this.#options.session;
    const fence = String(BigInt.asIntN(64, BigInt(`0x${this.#name}`)));
    await query({
      text: `SELECT pg_terminate_backend(pid) FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 1 AND (classid::bigint << 32 | objid::bigint) = $1::bigint AND granted
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      values: [fence],
      rowMode: 'array',
    });
    await query({ text: 'SELECT pg_advisory_lock($1::bigint)', values: [fence], rowMode: 'array' });
    await migrate(query, target, this.#options);
    // Here, and not on a separate connection: then the server need not wake another process for each of this process's
    // own commits.
    await query(`SELECT pg_advisory_lock_shared(${listenersOf(target.schema)})`);
    await query(`LISTEN ${channelOf(target.schema)}`);
    const [row] = await query(`SELECT ${revisionOf(target.schema)} FROM ${target.schema}.state`);
    if (!row)
      throw new StoreError(
        'Corrupt',
        `schema "${target.schema}" on ${target.where} has no state; put a backup in its place`,
      );
    const revision = Number(row[0]);
    if (revision < this.#revision)
      throw new StoreError(
        'Corrupt',
        `the store on ${target.where} has gone back from revision ${this.#revision} to ${revision}: another copy of the database is in its place; restart the server if that is intended`,
      );
    this.#revision = revision;
    this.#options.onNotice(revision);
  }

  /** A UUID: the writer's half, and a number. */
  #newBatch(): string {
    return this.#name + (this.#batches++).toString(16).padStart(16, '0');
  }
}
