// Applies the log to the entries: changes since `applied` are written as entries, each key once, and `applied` moves on. Commits wait for
// it only when it lags far behind.
//
// Every transaction of a round compares `applied` and writes it again, with the old revision until the last one. So of several processes
// that apply at once each stops the others, and no older value overwrites a newer one. An interrupted round is harmless: readers put the
// log after `applied` on top (known-state.ts), and the next round begins at `applied` again.

import { backoffMs } from '../../base/backoff.ts';
import { type Clock, sleep } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import { type Revision, StoreError } from '../store.ts';
import type { Etcd } from './etcd-client.ts';
import type { RequestOp } from './requests.ts';
import type { KnownState, Unapplied } from './known-state.ts';
import { encodeApplied, encodeEntry, type Layout, requestBytesMax, unchanged } from './layout.ts';
import { type LogReader, revisionOf } from './log-reader.ts';

export interface EntryFollowerOptions {
  readonly etcd: Etcd;
  readonly layout: Layout;
  readonly known: KnownState;
  readonly reader: LogReader;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
}

/**
 * How far the entries may lag: a start reads this much in some 10 ms. A key that is rewritten in the meantime is
 * written as an entry once.
 */
const lagRevisions = 512;
const lagBytes = 4 * 1024 * 1024;
/** From here on commits wait for the entries: a start reads this much in about 0.3 s. */
const lagBytesMax = 32 * 1024 * 1024;
/** About 50 ms: a conflict with another process, or a crash, wastes at most this. */
const changesPerRound = 1_000;
/** etcd accepts 128 in a transaction. */
const opsMax = 120;
const conflictDelay = { delayMsMin: 20, delayMsMax: 400 };

export class EntryFollower {
  readonly #options: EntryFollowerOptions;
  #round: Promise<boolean> | null = null;
  /** Number of callers that wait for the entries, however small the lag. */
  #awaited = 0;
  #closed = false;

  constructor(options: EntryFollowerOptions) {
    this.#options = options;
  }

  /**
   * The lag as a multiple of the allowed one. The process that raises it to the next whole number applies the log: one
   * of many.
   */
  lag(): number {
    const { known } = this.#options;
    return Math.floor(Math.max((known.revision - known.base) / lagRevisions, known.unappliedBytes / lagBytes));
  }

  /** Applies the log until the lag is allowed, unless that is in progress. */
  start(): void {
    if (this.#round || this.#closed || this.lag() === 0) return;
    this.#share().then(
      (done) => {
        if (done) this.start();
      },
      // The log has everything: later commits try again.
      (error: unknown) => this.#options.log.warn('entries cannot follow the log', { cause: describeError(error) }),
    );
  }

  /**
   * Resolves when the lag is not too large. It waits for one round at a time, so that commits are slowed down instead
   * of stopped for seconds.
   */
  async bearable(): Promise<void> {
    const { known } = this.#options;
    for (let conflicts = 0; known.unappliedBytes > lagBytesMax; )
      if (!(await this.#share())) await this.#afterConflict(conflicts++);
  }

  /** Resolves when the entries have followed up to `revision`. */
  async through(revision: Revision): Promise<void> {
    const { known } = this.#options;
    this.#awaited++;
    try {
      for (let conflicts = 0; known.base < revision; ) {
        if (this.#closed) throw new StoreError('Closed', 'entries did not follow the log: the store was closed');
        if (!(await this.#share())) await this.#afterConflict(conflicts++);
      }
    } finally {
      this.#awaited--;
    }
  }

  /** Another process is applying the log: it may have done enough by then. */
  #afterConflict(conflicts: number): Promise<void> {
    const { clock, prng } = this.#options;
    return sleep(clock, backoffMs(conflicts, conflictDelay, prng));
  }

  /** Resolves when nothing is in progress. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#round?.catch(() => {}); // reported to the caller that started it
  }

  #share(): Promise<boolean> {
    this.#round ??= this.#apply().finally(() => {
      this.#round = null;
    });
    return this.#round;
  }

  /** False when another process is applying the log. */
  async #apply(): Promise<boolean> {
    const { etcd, layout, known, reader } = this.#options;
    const attempted = 'letting the entries follow the log';
    const { applied, through, changes } = await reader.view(attempted, [], (look) => ({
      applied: look.applied,
      ...known.oldest(changesPerRound),
    }));
    // Another process has applied most of it: a small rest would only disturb that process.
    if (this.#awaited === 0 && this.lag() === 0) return true;
    changes.sort((a, b) => (a.key < b.key ? -1 : 1));
    let { modRevision } = applied;
    const rounds = portions(changes);
    for (const [i, portion] of rounds.entries()) {
      if (this.#closed) return false;
      const revision = i === rounds.length - 1 ? through : applied.revision;
      const ops = portion.map((change) => operationOf(change, layout));
      const success = [...ops, { requestPut: { key: layout.applied, value: [encodeApplied(revision)] } }];
      const compare = [unchanged(layout.applied, modRevision)];
      const response = await etcd.call('txn', { compare, success, failure: [] }, attempted);
      if (!response.succeeded) return false;
      modRevision = revisionOf(response);
    }
    known.applied(through);
    return true;
  }
}

function operationOf({ key, value, revision, place }: Unapplied, layout: Layout): RequestOp {
  if (value === null) return { requestDeleteRange: { key: layout.entry(key) } };
  return { requestPut: { key: layout.entry(key), value: encodeEntry(key, revision, value, place) } };
}

/** Each fits into a transaction and a request. */
function portions(changes: readonly Unapplied[]): Unapplied[][] {
  const found: Unapplied[][] = [];
  let portion: Unapplied[] = [];
  let bytes = 0;
  for (const change of changes) {
    const size = 64 + change.key.length + (change.place ? 0 : (change.value?.byteLength ?? 0));
    if (portion.length > 0 && (portion.length === opsMax || bytes + size > requestBytesMax)) {
      found.push(portion);
      portion = [];
      bytes = 0;
    }
    portion.push(change);
    bytes += size;
  }
  if (portion.length > 0) found.push(portion);
  return found;
}
