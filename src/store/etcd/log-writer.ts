// The writing side: one batch of commits, one record, one small transaction.
//
//   if the head is as we know it    put head, put record                  every condition held when it was written, and the
//                                                                         revisions follow the last one without a gap
//   else                            read head and log after what we know  take that in, decide again, try again
//
// That one compare puts the commits of all processes in one line, so what was decided here on the known state holds there: nothing was
// written in between. It also makes every answer final. A transaction whose answer was lost is sent again as it is: of all that
// compare one head at most one is ever carried out. It succeeds now; or the head has moved on, and the record that follows what we
// knew is ours (it was carried out) or another's (it was not, and never can be).
//
// A race like that is won again and again by whoever won it last: it has less to read before the next. So who has lost puts a key of its own
// under `waiting`, every commit sees those keys, and a process that has committed lets each of them have a turn before its next commit.

import { backoffMs } from '../../base/backoff.ts';
import { type Clock, sleep } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';
import type { LoggedCommit } from '../shared-log.ts';
import { type CommitResult, type Condition, type Key, type Revision, StoreError, type Write } from '../store.ts';
import type { Etcd } from './etcd-client.ts';
import { storeErrorOf } from './etcd-errors.ts';
import type { KeyValue } from './answers.ts';
import type { RequestOp, TxnPut } from './requests.ts';
import type { KnownState } from './known-state.ts';
import { encodeHead, encodeParted, type Layout, leftInParts, partBytes, present, unchanged } from './layout.ts';
import { type LogReader, revisionOf } from './log-reader.ts';
import { decodeHeader, encodePayload, encodeRecord, offsetsIn, type Payload } from './record.ts';

export interface CommitRequest {
  readonly conditions: readonly Condition[];
  /** Nobody else has these bytes. */
  readonly writes: readonly Write[];
}

export interface LogWriterOptions {
  readonly etcd: Etcd;
  readonly layout: Layout;
  readonly known: KnownState;
  readonly reader: LogReader;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly randomSecret: (length: number) => Buffer;
  readonly onTaken: (commits: readonly LoggedCommit[]) => void;
}

interface Decision {
  readonly results: readonly CommitResult[];
  readonly commits: readonly LoggedCommit[];
}

/** The commits of a decision as bytes. Revisions are not in them: they outlive a lost race that changed nothing else. */
interface Prepared {
  readonly id: string;
  readonly commits: readonly LoggedCommit[];
  readonly payload: Payload;
}

type Outcome = 'committed' | 'lost' | 'hoped in vain' | 'parts gone';

/** etcd takes 128 comparisons in a transaction. */
const hopedMax = 100;
const nothing: ReadonlySet<Key> = new Set();

/** From the second loss on a process asks for its turn. */
const lossesBeforeWaiting = 2;
/** So long tries follow each other at once: the turn comes soon, and one that is there is not to be slept through. */
const lossesAtOnce = 8;
/** What a turn takes at most: who waits may have died, or have nothing to write any more. */
const turnMsMax = 25;
const lossDelay = { delayMsMin: 2, delayMsMax: 100 };

export class LogWriter {
  readonly #options: LogWriterOptions;
  /** Of this process, under `waiting`. */
  readonly #waitingKey: Buffer;
  /** Up to which of etcd's revisions those who wait have had their turn. */
  #turnsGiven = 0;
  #turnDue = false;
  /** The key may be there, for the next commit to take away. */
  #waits = false;
  #endTurn: (() => void) | undefined;

  constructor(options: LogWriterOptions) {
    this.#options = options;
    this.#waitingKey = options.layout.waiting(options.randomSecret(8).toString('hex'));
  }

  /** Lets another process commit that asked for it. To be awaited before `commit`. */
  async giveTurn(): Promise<void> {
    if (!this.#turnDue) return;
    this.#turnDue = false;
    const ended = new AbortController();
    this.#endTurn = () => ended.abort();
    await sleep(this.#options.clock, turnMsMax, ended.signal);
    this.#endTurn = undefined;
  }

  /** Another process has committed. */
  turnTaken(): void {
    this.#endTurn?.();
  }

  /** Each request sees those before it. Rejects with `StoreError`; then none of them was committed, or nobody can say. */
  async commit(requests: readonly CommitRequest[]): Promise<readonly CommitResult[]> {
    const { known, reader, clock, prng } = this.#options;
    known.trim();
    let prepared: Prepared | undefined;
    let hopeful = true;
    try {
      for (let losses = 0; ; losses++) {
        if (losses === lossesBeforeWaiting) this.#askForTurn();
        if (losses >= lossesAtOnce) {
          await sleep(clock, backoffMs(losses - lossesAtOnce, lossDelay, prng));
          await reader.revision('commit'); // what was known is old by now
        }
        const hoped = hopeful ? this.#hopedAbsent(requests) : nothing;
        await this.#lookUp(requests, hoped);
        const decision = decide(requests, (key) => known.revisionOf(key) ?? (hoped.has(key) ? 0 : undefined), known);
        const sent = { revision: known.revision, modRevision: known.modRevision };
        const before = prepared;
        prepared = this.#prepare(decision, before);
        if (prepared?.id !== before?.id) {
          if (before) await this.#dropParts(before);
          if (prepared) await this.#putParts(prepared);
        }
        const outcome = await this.#send(prepared, { ...sent, hoped });
        if (outcome === 'committed') return decision.results;
        hopeful &&= outcome !== 'hoped in vain';
        if (outcome === 'parts gone') prepared = undefined;
      }
    } catch (error) {
      const surelyNot = error instanceof StoreError && error.outcome === 'none';
      if (prepared && surelyNot) await this.#dropParts(prepared);
      throw error;
    }
  }

  /**
   * Keys that shall be absent, and of which nothing is known: what has never been. That they are is asked in the transaction of the commit
   * itself, for while the head is as known a key without an unapplied change is what the entries say (known-state.ts). It saves a round trip.
   */
  #hopedAbsent(requests: readonly CommitRequest[]): ReadonlySet<Key> {
    const { known } = this.#options;
    const hoped = new Set<Key>();
    for (const { conditions } of requests) {
      for (const { key, ifRevision } of conditions)
        if (ifRevision === 0 && known.revisionOf(key) === undefined) hoped.add(key);
      if (hoped.size > hopedMax) return nothing;
    }
    return hoped;
  }

  async #lookUp(requests: readonly CommitRequest[], hoped: ReadonlySet<Key>): Promise<void> {
    const { known, reader } = this.#options;
    for (;;) {
      const missing = new Set<Key>();
      const need = (key: Key): void => {
        if (known.revisionOf(key) === undefined && !hoped.has(key)) missing.add(key);
      };
      for (const { conditions, writes } of requests) {
        for (const { key } of conditions) need(key);
        for (const { key, value } of writes) if (value === null) need(key);
      }
      if (missing.size === 0) return;
      await reader.lookUp([...missing]);
    }
  }

  #prepare({ commits }: Decision, before: Prepared | undefined): Prepared | undefined {
    if (commits.length === 0) return undefined;
    if (before && sameChanges(before.commits, commits)) return { ...before, commits };
    return { id: this.#options.randomSecret(16).toString('hex'), commits, payload: encodePayload(commits) };
  }

  async #send(
    prepared: Prepared | undefined,
    sent: { readonly revision: Revision; readonly modRevision: string; readonly hoped: ReadonlySet<Key> },
  ): Promise<Outcome> {
    const { etcd, layout, reader } = this.#options;
    const compare = [unchanged(layout.head, sent.modRevision)];
    for (const key of sent.hoped) compare.push(unchanged(layout.entry(key), '0'));
    const first = sent.revision + 1;
    const last = sent.revision + (prepared?.commits.length ?? 0);
    if (prepared && prepared.payload.parts > 0) compare.push(present(layout.part(prepared.id, 0)));
    const success = prepared ? this.#operationsOf(prepared, { first, last }) : [];
    let doubt = false;
    const onDoubt = (): void => {
      doubt = true;
    };
    const failure = reader.lookOps(sent.revision);
    const response = await etcd.call('txn', { compare, success, failure }, 'commit', { onDoubt });
    if (response.succeeded) {
      this.#noteWaiting(response.responses.at(-1)?.responseRange?.kvs ?? []);
      if (prepared) this.#committed(prepared, { first, last, modRevision: revisionOf(response) });
      return 'committed';
    }

    const look = reader.lookOf(response, sent.revision);
    if (look.head.modRevision === sent.modRevision) return sent.hoped.size > 0 ? 'hoped in vain' : 'parts gone';
    const record = look.records[0];
    const header = record && decodeHeader(record.value);
    if (prepared && record && header?.id === prepared.id && header.first === first) {
      this.#committed(prepared, { first, last, modRevision: record.modRevision });
      return 'committed';
    }
    if (prepared && doubt && header?.first !== first)
      throw storeErrorOf(
        { fault: 'away', maybeDone: true, text: 'etcd was away, and the log after it is forgotten by now' },
        { attempted: 'commit', name: etcd.name },
        { cause: undefined, outcome: 'unknown' },
      );
    await reader.takeIn(look, sent.revision);
    return 'lost';
  }

  /** The last one tells who waits. */
  #operationsOf(
    { id, commits, payload }: Prepared,
    { first, last }: { first: Revision; last: Revision },
  ): readonly RequestOp[] {
    const { layout } = this.#options;
    const puts: TxnPut[] = [
      { key: layout.head, value: [encodeHead(last)] },
      { key: layout.record(last), value: encodeRecord(id, first, payload) },
    ];
    if (payload.parts > 0)
      puts.push({ key: layout.parted(last), value: [encodeParted(id, [...offsetsIn(commits, leftInParts).keys()])] });
    const operations: RequestOp[] = puts.map((requestPut) => ({ requestPut }));
    if (this.#waits) operations.push({ requestDeleteRange: { key: this.#waitingKey } });
    operations.push({ requestRange: layout.allWaiting });
    return operations;
  }

  /** Not waited for: it only helps, and the next try is under way meanwhile. */
  #askForTurn(): void {
    this.#waits = true;
    const { etcd } = this.#options;
    etcd
      .call('put', { key: this.#waitingKey, value: Buffer.of(1) }, 'asking for a turn', { patienceMs: 0 })
      .catch(() => {});
  }

  /** Each who waits gets one turn, the longest waiting first. */
  #noteWaiting(waiting: readonly KeyValue[]): void {
    const others = waiting.filter(({ key }) => !key.equals(this.#waitingKey));
    const due = others.map(({ modRevision }) => Number(modRevision)).filter((asked) => asked > this.#turnsGiven);
    this.#waits = others.length < waiting.length; // it may have come after the commit that it was for
    if (due.length === 0) return;
    this.#turnsGiven = Math.min(...due);
    this.#turnDue = true;
  }

  #committed(prepared: Prepared, at: { first: Revision; last: Revision; modRevision: string }): void {
    const { id, commits, payload } = prepared;
    const batch = { ...at, id, commits, parted: payload.parts > 0, bytes: payload.bytes.byteLength };
    if (this.#options.known.take(batch)) this.#options.onTaken(commits);
  }

  async #putParts({ id, payload }: Prepared): Promise<void> {
    const { etcd, layout } = this.#options;
    for (let number = 0; number < payload.parts; number++) {
      const value = payload.bytes.subarray(number * partBytes, (number + 1) * partBytes);
      await etcd.call('put', { key: layout.part(id, number), value }, 'putting a large commit');
    }
  }

  /** Of a record that never came, and cannot come any more. What stays behind is found by a compaction. */
  async #dropParts({ id, payload }: Prepared): Promise<void> {
    const { etcd, layout } = this.#options;
    if (payload.parts > 0)
      await etcd.call('deleteRange', layout.parts(id), 'dropping parts', { patienceMs: 0 }).catch(() => {});
  }
}

/** Every lookup is answered by `revisionNow`. Nothing is waited for from here until the decision is sent. */
function decide(
  requests: readonly CommitRequest[],
  revisionNow: (key: Key) => Revision | undefined,
  known: { readonly revision: Revision },
): Decision {
  let { revision } = known;
  const commits: LoggedCommit[] = [];
  /** Of the requests before the one at work. */
  const pending = new Map<Key, Revision>();
  const revisionOf = (key: Key): Revision | undefined => pending.get(key) ?? revisionNow(key);
  const results = requests.map(({ conditions, writes }): CommitResult => {
    const failed = conditions.find(({ key, ifRevision }) => revisionOf(key) !== ifRevision);
    if (failed) return { ok: false, key: failed.key };
    const changes = writes.filter(({ key, value }) => value !== null || revisionOf(key) !== 0);
    if (changes.length === 0) return { ok: true, revision };
    revision++;
    const written = revision;
    const events = changes.map(({ key, value }) => ({ key, value, revision: written }));
    for (const { key, value } of changes) pending.set(key, value === null ? 0 : written);
    commits.push({ revision, events });
    return { ok: true, revision };
  });
  return { results, commits };
}

/** The same values, not only equal ones: both decisions are about the same requests. */
function sameChanges(before: readonly LoggedCommit[], now: readonly LoggedCommit[]): boolean {
  return (
    before.length === now.length &&
    before.every(({ events }, i) => {
      const others = now[i]?.events ?? [];
      return (
        events.length === others.length &&
        events.every(({ key, value }, n) => key === others[n]?.key && value === others[n]?.value)
      );
    })
  );
}
