// Lets the entries follow the log: what was changed since `applied` is written as entries, each key once, and `applied` moves on. No
// commit waits for it, but when it lags far behind.
//
// Every transaction of a round compares `applied` and puts it anew, with the old revision until the last. So of several processes that
// apply at once each stops the others, and nobody writes an older value over a newer one. A round that ends in the middle harms
// nobody: readers put the log after `applied` on top (known-state.ts), and the next round begins at `applied` again.

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

/** How far the entries may lag: a start reads as much, some 10 ms. What is written again meanwhile is written as an entry once. */
const lagRevisions = 512;
const lagBytes = 4 * 1024 * 1024;
/** From here on commits wait for the entries: a start reads as much, some 0.3 s. */
const lagBytesMax = 32 * 1024 * 1024;
/** Some 50 ms: what another process, or a crash, makes vain is no more than that. */
const changesPerRound = 1_000;
/** etcd takes 128 in a transaction. */
const opsMax = 120;
const conflictDelay = { delayMsMin: 20, delayMsMax: 400 };

export class EntryFollower {
  readonly #options: EntryFollowerOptions;
  #round: Promise<boolean> | null = null;
  /** How many wait for the entries, however little they lag. */
  #awaited = 0;
  #closed = false;

  constructor(options: EntryFollowerOptions) {
    this.#options = options;
  }

  /**
   * How many times what may lag does lag. Whoever takes it to the next whole number lets the entries follow: of many processes that is one.
   */
  lag(): number {
    const { known } = this.#options;
    return Math.floor(Math.max((known.revision - known.base) / lagRevisions, known.unappliedBytes / lagBytes));
  }

  /** Lets them follow until they do not lag any more, unless that is under way already. */
  start(): void {
    if (this.#round || this.#closed || this.lag() === 0) return;
    this.#share().then(
      (done) => {
        if (done) this.start();
      },
      // The log holds it all: it is tried again with later commits.
      (error: unknown) => this.#options.log.warn('entries cannot follow the log', { cause: describeError(error) }),
    );
  }

  /** Resolves when they do not lag too far. A round at a time: commits are slowed down then, and not stopped for seconds. */
  async bearable(): Promise<void> {
    const { known } = this.#options;
    for (let conflicts = 0; known.unappliedBytes > lagBytesMax; )
      if (!(await this.#share())) await this.#afterConflict(conflicts++);
  }

  /** Resolves when they have followed up to `revision`. */
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

  /** Another process applies: it may have done enough by then. */
  #afterConflict(conflicts: number): Promise<void> {
    const { clock, prng } = this.#options;
    return sleep(clock, backoffMs(conflicts, conflictDelay, prng));
  }

  /** Resolves when nothing is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#round?.catch(() => {}); // told to whoever began it
  }

  #share(): Promise<boolean> {
    this.#round ??= this.#apply().finally(() => {
      this.#round = null;
    });
    return this.#round;
  }

  /** False when another process does it. */
  async #apply(): Promise<boolean> {
    const { etcd, layout, known, reader } = this.#options;
    const attempted = 'letting the entries follow the log';
    const { applied, through, changes } = await reader.view(attempted, [], (look) => ({
      applied: look.applied,
      ...known.oldest(changesPerRound),
    }));
    // Another process has applied it meanwhile: the little that is left would only disturb it.
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

/** Each fits a transaction and a request. */
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
