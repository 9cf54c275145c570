// The reading side: a few connections for entries, and one that follows the log. It reads from the primary only, and
// every result is consistent.

import { crc32 } from 'node:zlib';
import { escapeLiteral } from 'pg';
import { endOfPrefix, startOfList } from '../check-request.ts';
import { decodeEvents } from '../event-codec.ts';
import { type LoggedCommit, logPatienceMsMax, type LogPage } from '../shared-log.ts';
import { type Entry, type Key, type Listed, type ListOptions, type Revision, StoreError } from '../store.ts';
import { CopiedRows } from './copy-out.ts';
import { Patience, type PatienceOptions } from './patience.ts';
import { toStoreError } from './postgres-errors.ts';
import { revisionOf } from './postgres-schema.ts';
import { PostgresSession, type SessionOptions } from './postgres-session.ts';

export interface ReaderOptions extends PatienceOptions {
  readonly session: SessionOptions;
}

/** Lists are read at the start and after a loss; more connections would only wait for the same disk. */
const sessionsMax = 4;

/** A page of the log. */
const pageBytesMax = 4 * 1024 * 1024;
const pageCommitsMax = 2_000;

/** Per transaction of a compaction, so that it blocks others only briefly. */
const forgetRevisionsMax = 5_000;

export class PostgresReader {
  readonly #options: ReaderOptions;
  readonly #sessions: readonly PostgresSession[];
  readonly #follower: PostgresSession;

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.#sessions = Array.from({ length: sessionsMax }, () => new PostgresSession(options.session));
    this.#follower = new PostgresSession(options.session);
  }

  async get(key: Key): Promise<Entry | null> {
    const [row] = await this.#read(`get of "${key}"`, {
      name: 'get',
      text: `SELECT value, revision FROM ${this.#schema}.entries WHERE key = $1`,
      values: [key],
    });
    return row ? { key, value: bytesOf(row[0]), revision: Number(row[1]) } : null;
  }

  /** One statement sees one snapshot: the first row has its revision. */
  async list(prefix: string, options: ListOptions): Promise<Listed> {
    const [start, end] = [startOfList(prefix, options), endOfPrefix(prefix)].map(escapeLiteral);
    const limit = options.limit === undefined ? '' : `LIMIT ${options.limit}`;
    const statement = `SELECT NULL::text AS key, NULL::bytea AS value, ${revisionOf(this.#schema)} AS revision UNION ALL
      (SELECT key, value, revision FROM ${this.#schema}.entries WHERE key >= ${start} AND key < ${end} ORDER BY key ${limit})`;
    const rows = new CopiedRows(
      await this.#patiently(this.#idlest(), `list of "${prefix}"`, (session) => session.copy(statement)),
    );
    const entries: Entry[] = [];
    let revision: Revision = 0;
    while (rows.next()) {
      const [key, value, written] = [rows.text(), rows.bytes(), rows.integer()];
      if (key !== null && value !== null) entries.push({ key, value, revision: written });
      else revision = written;
    }
    return { entries, revision };
  }

  /** The current revision; the connection that follows the log exists afterwards. */
  async open(): Promise<State> {
    return this.#state(this.#follower, 'opening the store');
  }

  async state(attempted: string): Promise<State> {
    return this.#state(this.#idlest(), attempted);
  }

  /** The log after `after`, with the state of the store at that moment in the first row. */
  async history(after: Revision): Promise<LogPage> {
    const patienceMs = Math.min(this.#options.patienceMs, logPatienceMsMax);
    const query = {
      name: 'history',
      text: `SELECT NULL AS revision, NULL AS events, NULL AS checksum, NULL AS absent, ${revisionOf(this.#schema)} AS at, compacted
        FROM ${this.#schema}.state
        UNION ALL
        (SELECT revision, events, checksum, absent, NULL, NULL FROM (
          SELECT *, sum(octet_length(events)) OVER (ORDER BY revision) - octet_length(events) AS bytes_before
          FROM (SELECT * FROM ${this.#schema}.log WHERE revision > $1 ORDER BY revision LIMIT ${pageCommitsMax}) AS next
        ) AS page WHERE bytes_before < ${pageBytesMax} ORDER BY revision)`,
      values: [after],
    };
    const [[, , , , at, from] = [], ...rows] = await this.#ask(this.#follower, 'reading the log', query, patienceMs);
    const [revision, compacted] = [Number(at), Number(from)];
    if (revision < after)
      throw this.#corrupt(
        `it has gone back from revision ${after} to ${revision}: another copy of the database is in its place`,
      );
    if (after + 1 < compacted) return { commits: [], revision, compacted };
    const commits = rows.map((row) => this.#decode(row));
    const lacking = commits.findIndex((commit, i) => commit.revision !== after + 1 + i);
    if (lacking >= 0 || (commits.length === 0 && revision > after))
      throw this.#corrupt(`its log lacks revision ${after + 1 + Math.max(lacking, 0)}`);
    return { commits, revision, compacted };
  }

  /** History below `before` counts as deleted. */
  async setCompacted(before: Revision): Promise<void> {
    await this.#read('compaction', {
      text: `UPDATE ${this.#schema}.state SET compacted = $1 WHERE compacted < $1::bigint`,
      values: [before],
    });
  }

  /**
   * Deletes what is below, in portions, while `goOn` returns true; never the last row, which is the revision of the
   * store.
   */
  async forget(before: Revision, goOn: () => boolean): Promise<void> {
    const [[lowest] = []] = await this.#read('compaction', { text: `SELECT min(revision) FROM ${this.#schema}.log` });
    if (lowest === null) return;
    for (let from = Number(lowest); from < before && goOn(); from += forgetRevisionsMax)
      await this.#read('compaction', {
        name: 'forget',
        text: `DELETE FROM ${this.#schema}.log WHERE revision < least($1::bigint, $2::bigint, ${revisionOf(this.#schema)})`,
        values: [before, from + forgetRevisionsMax],
      });
  }

  /** Resolves when all requests have their answers and the connections are closed. */
  async close(): Promise<void> {
    await Promise.all([this.#follower, ...this.#sessions].map((session) => session.close()));
  }

  get #schema(): string {
    return this.#options.session.target.schema;
  }

  async #state(session: PostgresSession, attempted: string): Promise<State> {
    const text = `SELECT ${revisionOf(this.#schema)}, compacted FROM ${this.#schema}.state`;
    const [row = []] = await this.#ask(session, attempted, { text });
    return { revision: Number(row[0]), compacted: Number(row[1]) };
  }

  #read(attempted: string, query: Asked): Promise<readonly unknown[][]> {
    return this.#ask(this.#idlest(), attempted, query);
  }

  #idlest(): PostgresSession {
    return this.#sessions.reduce((a, b) => (b.pending < a.pending ? b : a));
  }

  #ask(session: PostgresSession, attempted: string, query: Asked, patienceMs?: number): Promise<readonly unknown[][]> {
    return this.#patiently(session, attempted, () => session.query({ ...query, rowMode: 'array' }), patienceMs);
  }

  /** All requests here may be sent twice. */
  async #patiently<T>(
    session: PostgresSession,
    attempted: string,
    ask: (session: PostgresSession) => Promise<T>,
    patienceMs = this.#options.patienceMs,
  ): Promise<T> {
    const patience = new Patience({ ...this.#options, patienceMs });
    for (;;) {
      try {
        return await ask(session);
      } catch (error) {
        if (await patience.allows(error)) continue;
        throw toStoreError(error, { attempted, where: this.#options.session.target.where });
      }
    }
  }

  #decode([at, bytes, checksum, absent]: readonly unknown[]): LoggedCommit {
    const revision = Number(at);
    if (!Buffer.isBuffer(bytes) || crc32(bytes) !== Number(checksum))
      throw this.#corrupt(`revision ${revision} of its log has a wrong checksum`);
    const events = decodeEvents(bytes, revision, '');
    return { revision, events: Array.isArray(absent) ? events.filter((_, n) => !absent.includes(n)) : events };
  }

  #corrupt(found: string): StoreError {
    const { where, schema } = this.#options.session.target;
    const wayBack = 'Stop the servers, and put a backup in its place';
    return new StoreError('Corrupt', `schema "${schema}" on ${where} is damaged: ${found}. ${wayBack}`);
  }
}

interface State {
  readonly revision: Revision;
  readonly compacted: Revision;
}

interface Asked {
  readonly name?: string;
  readonly text: string;
  readonly values?: unknown[];
}

function bytesOf(value: unknown): Uint8Array {
  if (Buffer.isBuffer(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  throw new StoreError('Corrupt', 'an entry of the store has no value');
}
