// The writing side: one batch of commits, one record, one small transaction.
//
//   if the head is as known    put head, put record                     every condition held when it was written, and the
//                                                                       revisions follow the last one without a gap
//   else                       read head and log after the known state  apply that, decide again, try again
//
// That one compare serialises the commits of all processes, so a decision on the known state is valid: nothing was written in between. It
// also makes every outcome final. A transaction whose response was lost is sent again unchanged: of all transactions that compare the same
// head at most one is ever executed. It succeeds now; or the head has moved on, and the record that follows the known state is this
// process's own (the transaction was executed) or another's (it was not, and never can be).
//
// The last winner of such a race tends to win again, because it has less to read before the next one. So a loser puts its own key under
// `waiting`, every commit reads those keys, and a process that has committed gives each of them a turn before its next commit.

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
  /** These bytes belong to this writer alone. */
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

/**
 * The commits of a decision as bytes, without revisions: they can be reused after a lost race that changed nothing
 * else.
 */
interface Prepared {
  readonly id: string;
  readonly commits: readonly LoggedCommit[];
  readonly payload: Payload;
}

type Outcome = 'committed' | 'lost' | 'hoped in vain' | 'parts gone';

/** etcd accepts 128 comparisons in a transaction. */
const hopedMax = 100;
const nothing: ReadonlySet<Key> = new Set();

/** From the second lost race on a process requests a turn. */
const lossesBeforeWaiting = 2;
/** This many tries follow each other without delay: the turn comes soon, and must not be missed. */
const lossesAtOnce = 8;
/** Maximum duration of a turn: the waiting process may have died, or have nothing left to write. */
const turnMsMax = 25;
const lossDelay = { delayMsMin: 2, delayMsMax: 100 };

export class LogWriter {
  readonly #options: LogWriterOptions;
  /** Of this process, under `waiting`. */
  readonly #waitingKey: Buffer;
  /** The etcd revision up to which waiting processes have had their turn. */
  #turnsGiven = 0;
  #turnDue = false;
  /** The key may exist; the next commit deletes it. */
  #waits = false;
  #endTurn: (() => void) | undefined;

  constructor(options: LogWriterOptions) {
    this.#options = options;
    this.#waitingKey = options.layout.waiting(options.randomSecret(8).toString('hex'));
  }

  /** Lets a waiting process commit. Await it before `commit`. */
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

  /**
   * Each request sees the earlier ones. Rejects with `StoreError`; then none of them was committed, or the outcome is
   * unknown.
   */
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
          await reader.revision('commit'); // the known state is outdated by now
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
   * Keys that must be absent and are unknown, which mostly never existed. Their absence becomes a condition of the
   * commit's own transaction: while the head is as known, the entry of a key without an unapplied change is its state
   * (known-state.ts). This saves a round trip.
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

  /** The last operation reads the waiting processes. */
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

  /** Not awaited: it is only a hint, and the next try runs meanwhile. */
  #askForTurn(): void {
    this.#waits = true;
    const { etcd } = this.#options;
    etcd
      .call('put', { key: this.#waitingKey, value: Buffer.of(1) }, 'asking for a turn', { patienceMs: 0 })
      .catch(() => {});
  }

  /** Each waiting process gets one turn, the longest waiting first. */
  #noteWaiting(waiting: readonly KeyValue[]): void {
    const others = waiting.filter(({ key }) => !key.equals(this.#waitingKey));
    const due = others.map(({ modRevision }) => Number(modRevision)).filter((asked) => asked > this.#turnsGiven);
    this.#waits = others.length < waiting.length; // it may have arrived after the commit it was for
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

  /** Parts of a record that was never written, and cannot be any more. A compaction deletes leftovers. */
  async #dropParts({ id, payload }: Prepared): Promise<void> {
    const { etcd, layout } = this.#options;
    if (payload.parts > 0)
      await etcd.call('deleteRange', layout.parts(id), 'dropping parts', { patienceMs: 0 }).catch(() => {});
  }
}

/** Every lookup is answered by `revisionNow`. Nothing is awaited from here until the decision is sent. */
function decide(
  requests: readonly CommitRequest[],
  revisionNow: (key: Key) => Revision | undefined,
  known: { readonly revision: Revision },
): Decision {
  let { revision } = known;
  const commits: LoggedCommit[] = [];
  /** By the earlier requests of this batch. */
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

/** The same objects, not only equal ones: both decisions are for the same requests. */
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
