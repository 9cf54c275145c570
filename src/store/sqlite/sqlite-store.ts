// The embedded store: one SQLite file, one process, one connection in a thread of its own. Commits that arrive while a
// transaction is in progress share the next one and its fsync, and none is answered before that fsync.
//
//   commit ──▶ queue ── batch ──▶ thread: one transaction, fsync ── results ──▶ answers, recent history ──▶ watchers

import { existsSync, realpathSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { assert } from '../../base/assert.ts';
import { describeError, type Logger, silentLogger } from '../../base/log.ts';
import { system } from '../../base/system.ts';
import { checkCommit, checkCompact, checkKey, checkList, endOfPrefix, startOfList } from '../check-request.ts';
import { GroupCommit } from '../group-commit.ts';
import { ListInBuffers } from '../list-in-buffers.ts';
import { RecentHistory } from '../recent-history.ts';
import {
  type CommitResult,
  Compacted,
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
import { WatchTail } from '../watch-tail.ts';
import { decodeEntries } from './entries-codec.ts';
import { FilesInPlace } from './files-in-place.ts';
import { encodeRequest, type RequestBytes } from './request-codec.ts';
import { makeFolderOf } from './sqlite-file.ts';
import { type FileLock, lockFile } from './sqlite-lock.ts';
import type { Answers, Call, CallName, Reply, ThreadInput } from './sqlite-messages.ts';
import type { FileState } from './sqlite-writer.ts';

export interface SqliteStoreOptions {
  /** The file; `-wal` beside it exists while the store is open, and `.lock` always. On a local file system. */
  readonly path: string;
  readonly log?: Logger;
  /** Refuses a missing file instead of creating one. */
  readonly mustExist?: boolean;
  /** See `FileOptions`; default 256 MiB, about half a second. */
  readonly fullCheckBytesMax?: number;
}

/** Limits of a transaction; the rest waits for the next one. */
const batchCommitsMax = 1024;
const batchBytesMax = 8 * 1024 * 1024;

/** Some thousands of creates: far more than any following watcher lags. */
const recentBytesMax = 16 * 1024 * 1024;

/** Per transaction of a compaction, so that commits can run in between. */
const forgetRevisionsMax = 500;

export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  if (options.mustExist && !existsSync(options.path))
    throw new StoreError('Invalid', `there is no store at ${options.path}`);
  makeFolderOf(options.path);
  const path = existsSync(options.path) ? realpathSync(options.path) : options.path;
  const lock = lockFile(path);
  const log = (options.log ?? silentLogger).with({ store: path });
  const thread = new Thread({ path, fullCheckBytesMax: options.fullCheckBytesMax ?? 256 * 1024 * 1024 }, log);
  try {
    const { after } = await thread.call({ call: 'open' });
    return new SqliteStore({ thread, lock, files: new FilesInPlace(path), state: after });
  } catch (error) {
    await thread.end();
    lock.release();
    throw reasonOf(error);
  }
}

interface Request {
  readonly bytes: RequestBytes;
  readonly writes: readonly Write[];
  readonly resolve: (result: CommitResult) => void;
  readonly reject: (error: unknown) => void;
}

class SqliteStore implements Store {
  readonly exclusive = true;
  readonly #thread: Thread;
  readonly #lock: FileLock;
  readonly #files: FilesInPlace;
  #state: FileState;
  #closed = false;
  readonly #commits = new GroupCommit<Request>({
    commitsMax: batchCommitsMax,
    bytesMax: batchBytesMax,
    bytesOf: ({ bytes }) => bytes.byteLength,
    write: (batch) => this.#write(batch),
  });
  readonly #recent = new RecentHistory(recentBytesMax);
  readonly #tail = new WatchTail({
    refresh: async () => this.#files.check(),
    revision: () => this.#state.revision,
    read: (prefix, after) => this.#read(prefix, after),
    pause: () => new Promise((resolve) => system.afterTurn(resolve)),
  });

  constructor(opened: { thread: Thread; lock: FileLock; files: FilesInPlace; state: FileState }) {
    this.#thread = opened.thread;
    this.#lock = opened.lock;
    this.#files = opened.files;
    this.#state = opened.state;
    this.#recent.reset(opened.state.revision);
  }

  async get(key: Key): Promise<Entry | null> {
    checkKey(key);
    const attempted = `get of "${key}"`;
    this.#assertOpen(attempted);
    return this.#call(attempted, { call: 'get', key });
  }

  async list(prefix: string, options: ListOptions = {}): Promise<Listed> {
    checkList(prefix, options);
    const attempted = `list of "${prefix}"`;
    const start = startOfList(prefix, options);
    this.#assertOpen(attempted);
    const { answer, after: state } = await this.#told(
      this.#thread.call({ call: 'list', prefix, start, end: endOfPrefix(prefix), limit: options.limit ?? -1 }),
    );
    return new ListInBuffers(decodeEntries(answer), state.revision, [answer]);
  }

  async commit(conditions: readonly Condition[], writes: readonly Write[]): Promise<CommitResult> {
    checkCommit(conditions, writes);
    this.#assertOpen('commit');
    return new Promise((resolve, reject) => {
      // A copy: the transaction comes later, and the caller may reuse its arrays and buffers.
      this.#commits.add({ ...encodeRequest(conditions, writes), resolve, reject });
    });
  }

  watch(prefix: string, after: Revision, signal: AbortSignal): AsyncIterable<readonly WatchEvent[]> {
    return this.#tail.watch(prefix, after, signal);
  }

  async compact(before: Revision): Promise<void> {
    this.#assertOpen('compaction');
    checkCompact(before, this.#state.revision);
    if (before <= this.#state.compacted) return;
    while (await this.#call('compaction', { call: 'follow', before })); // commits run in between
    await this.#call('compaction', { call: 'setCompacted', before });
    // These rows are unused; what a crash leaves of them is deleted by the next compaction.
    while (
      !this.#closed &&
      (await this.#call('compaction', { call: 'forget', before, count: forgetRevisionsMax }).catch(endedMeanwhile))
    );
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#commits.settled();
    try {
      await this.#thread.call({ call: 'close' });
    } catch (error) {
      throw reasonOf(error);
    } finally {
      await this.#thread.end();
      this.#lock.release();
      this.#tail.close();
    }
  }

  /** One batch, one transaction, one fsync; then, and only then, the answers. */
  async #write(batch: readonly Request[]): Promise<void> {
    try {
      const call = { call: 'commit', requests: batch.map(({ bytes }) => bytes) } as const;
      const { before, after, answer } = await this.#thread.call(call);
      this.#settle(batch, { before, after, ...answer });
    } catch (error) {
      if (error instanceof FailedCall) this.#tellState(error.after);
      for (const request of batch) request.reject(reasonOf(error));
      this.#tellMoved();
    }
  }

  #settle(
    batch: readonly Request[],
    { before, after, results, absent }: Answers['commit'] & { before: FileState; after: FileState },
  ): void {
    this.#tellState(before);
    const changed: Key[] = [];
    let { revision } = before;
    for (const [i, { writes }] of batch.entries()) {
      const result = results[i];
      assert(result, 'every request of a batch has its own result');
      if (!result.ok || result.revision === revision) continue;
      revision = result.revision;
      const gone = absent.length === 0 ? [] : absent.filter(({ request }) => request === i).map(({ key }) => key);
      const there = gone.length === 0 ? writes : writes.filter(({ key }) => !gone.includes(key));
      const events = there.map(({ key, value }) => ({ key, value, revision: result.revision }));
      this.#recent.append(events);
      for (const { key } of events) changed.push(key);
    }
    assert(revision === after.revision, `the batch ends at ${revision}, the file at ${after.revision}`);
    this.#state = after;
    for (const [i, request] of batch.entries()) {
      const result = results[i];
      if (result) request.resolve(result);
    }
    if (changed.length > 0) this.#tail.committed(after.revision, changed);
  }

  /** Followers are informed: the server is not ready then. */
  #tellMoved(): void {
    try {
      this.#files.check();
    } catch (error) {
      if (error instanceof StoreError) this.#tail.lose(error);
    }
  }

  /** The file may be ahead of the known state: after a commit with an unknown outcome. */
  #tellState(state: FileState): void {
    if (state.revision === this.#state.revision) {
      this.#state = state;
      return;
    }
    this.#state = state;
    this.#recent.reset(state.revision);
    this.#tail.wakeAll();
  }

  async #read(
    prefix: string,
    after: Revision,
  ): Promise<{ readonly events: readonly WatchEvent[]; readonly through: Revision }> {
    if (after + 1 < this.#state.compacted) throw new Compacted(this.#state.compacted);
    if (after >= this.#state.revision) return { events: [], through: after };
    const recent = this.#recent.read(prefix, after);
    if (recent) return recent;
    const known = this.#state.revision;
    const read = await this.#call(`watch of "${prefix}"`, { call: 'history', prefix, after });
    // Later events may be compacted by now; this result is complete up to `through`.
    return read.through > known
      ? { events: read.events.filter(({ revision }) => revision <= known), through: known }
      : read;
  }

  async #call<N extends CallName>(attempted: string, call: Extract<Call, { call: N }>): Promise<Answers[N]> {
    this.#assertOpen(attempted);
    return (await this.#told(this.#thread.call(call))).answer;
  }

  /** Applies the state of the file that a call returns. */
  async #told<N extends CallName>(done: Promise<Done<N>>): Promise<Done<N>> {
    try {
      const result = await done;
      this.#tellState(result.after);
      return result;
    } catch (error) {
      if (error instanceof FailedCall) this.#tellState(error.after);
      throw reasonOf(error);
    }
  }

  #assertOpen(attempted: string): void {
    if (this.#closed) throw new StoreError('Closed', `${attempted} refused: the store was closed`);
  }
}

/** A compaction that the end of the store interrupts has ended; another failure is thrown. */
function endedMeanwhile(error: unknown): boolean {
  if (error instanceof StoreError && error.code === 'Closed') return false;
  throw error;
}

function reasonOf(error: unknown): unknown {
  return error instanceof FailedCall ? error.reason : error;
}

interface Done<N extends CallName> {
  readonly before: FileState;
  readonly after: FileState;
  readonly answer: Answers[N];
}

/** A failed call, and the state of the file after it. */
class FailedCall extends Error {
  override name = 'FailedCall';
  readonly reason: StoreError;
  readonly after: FileState;

  constructor(reason: StoreError, after: FileState) {
    super(reason.message);
    this.reason = reason;
    this.after = after;
  }
}

interface Waiting {
  readonly call: CallName;
  readonly done: (reply: Extract<Reply, { type: 'done' | 'failed' }>) => void;
  readonly failed: (error: unknown) => void;
}

/** The other thread: calls are answered in order. */
class Thread {
  readonly #path: string;
  readonly #worker: Worker;
  readonly #waiting: Waiting[] = [];
  readonly #ended: Promise<void>;
  #over: StoreError | undefined;

  constructor(input: ThreadInput, log: Logger) {
    this.#path = input.path;
    this.#worker = new Worker(threadFile(), { workerData: input });
    this.#worker.on('message', (reply: Reply) => {
      if (reply.type === 'log') log[reply.level](reply.message, reply.fields);
      else this.#waiting.shift()?.done(reply);
    });
    this.#worker.on('error', (error) => {
      log.error('the thread of the store ended', { cause: describeError(error) });
      this.#end(error);
    });
    this.#ended = new Promise((resolve) =>
      this.#worker.once('exit', () => {
        this.#end(undefined);
        resolve();
      }),
    );
  }

  /** Rejects with `FailedCall`, or with `StoreError` when the thread has ended. */
  call<N extends CallName>(call: Extract<Call, { call: N }>): Promise<Done<N>> {
    if (this.#over) return Promise.reject(this.#over);
    return new Promise((resolve, reject) => {
      this.#waiting.push({
        call: call.call,
        done: (reply) => {
          const { before, after } = reply;
          if (reply.type === 'done')
            resolve({ before, after, answer: reply.answer as Answers[N] }); // the codec: sqlite-thread.ts answers so
          else {
            const { code, message, outcome, cause } = reply.failure;
            const reason = code === 'Closed' ? undefined : new Error(cause);
            reject(new FailedCall(new StoreError(code, message, { outcome, cause: reason }), after));
          }
        },
        failed: reject,
      });
      this.#worker.postMessage(call);
    });
  }

  /** Resolves when the thread has ended. */
  async end(): Promise<void> {
    await this.#worker.terminate();
    await this.#ended;
  }

  #end(cause: unknown): void {
    this.#over ??= new StoreError(
      'Unavailable',
      `the thread that writes ${this.#path} has ended; start the server again`,
      { cause },
    );
    for (const { call, failed } of this.#waiting.splice(0)) {
      const outcome = call === 'commit' ? 'unknown' : 'none';
      failed(new StoreError('Unavailable', this.#over.message, { cause, outcome }));
    }
  }
}

/**
 * Beside this file in a checkout; in the package this code is in `chunks/`, and the thread is a separate file
 * (scripts/build.ts).
 */
function threadFile(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './sqlite-thread.ts' : '../sqlite-thread.js', import.meta.url);
}
