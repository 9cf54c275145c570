// Plans into the store: the only writer. Plans queue while a commit is under way and then go together as one durable write;
// each is all or nothing. A Plan that was decided on another Plan's uncommitted change fails with that Plan.

import { assert } from '../base/assert.ts';
import { type Buggify, neverBuggify } from '../base/buggify.ts';
import type { Logger } from '../base/log.ts';
import { ApiError, nothingChanged } from '../api/errors.ts';
import type { Instance } from '../api/resources/instance.ts';
import { type Assumption, type Cache, isNewEvent } from '../core/state/cache.ts';
import { whyRefused } from '../core/state/cluster-state.ts';
import { encodeRecord } from '../core/state/codec.ts';
import { keys } from '../core/state/keys.ts';
import type { Plan, PlanAuthor } from '../core/state/plan.ts';
import type { AnyRecord } from '../core/state/records.ts';
import { CommitTurns, type Pipelined, unshared } from './commit-turns.ts';
import { type Condition, type Store, StoreError, type Write } from '../store/store.ts';

export type CommitOutcome =
  | { readonly ok: true; readonly revision: number }
  | { readonly ok: false; readonly key: string };

/** Records the authors of Plans, in the commit that makes the Plans durable. */
export interface AuthorNotes {
  noteFor(authors: readonly PlanAuthor[]): Write;
  /** The commit is durable, and no caller knows yet. */
  committed(authors: readonly PlanAuthor[], revision: number): void;
  /** The commit did not happen. */
  dropped(authors: readonly PlanAuthor[]): void;
  /** It is not known whether the commit happened. */
  inDoubt(authors: readonly PlanAuthor[]): void;
}

/** Counts commits, for the metrics. */
export interface CommitMeasures {
  /** A commit of `plans` Plans begins; call the returned function with its outcome. */
  begins(plans: number): (outcome: 'written' | 'refused' | 'failed') => void;
  /** An instance got its `incarnation`th host, `afterMs` after its creation. */
  placed(incarnation: number, afterMs: number): void;
}

const unmeasured: CommitMeasures = { begins: () => () => {}, placed: () => {} };

interface Pending {
  readonly author: PlanAuthor | undefined;
  readonly assumption: Assumption;
  /**
   * For each change, then for each condition: the token of the uncommitted change on which it was decided; 0 for none; -1 when that change
   * was committed meanwhile and is one of `conditions` now.
   */
  readonly restsOn: readonly number[];
  readonly conditions: readonly Condition[];
  /** The revision of the store's epoch record on which the Plan was decided. */
  readonly epochAt: number;
  readonly told: Told;
}

/** Called once, with the outcome of a Plan; with an `ApiError`, `StoreFull` or `Unavailable`, when the store failed. */
export type Told = (fate: CommitOutcome | ApiError) => void;

/** Writers that wait for their turn to decide. */
interface Wanting {
  readonly plans?: number;
  readonly from?: Pipelined | undefined;
}

/** Enough to share one fsync among a burst of some 500 creates; a few MiB, far below what a store takes in one commit. */
const writesPerCommitMax = 3_000;

export class Committer {
  readonly #store: Store;
  readonly #cache: Cache;
  readonly #log: Logger;
  readonly #buggify: Buggify;
  readonly #queue: Pending[] = [];
  readonly #turns = new CommitTurns();
  #busy: Promise<void> | null = null;
  /** The number of the last queued Plan; and the callers that wait until all Plans up to a number have an outcome. */
  #lastToken = 0;
  readonly #wantFates: { readonly upToToken: number; readonly resolve: () => void }[] = [];
  /** The records of the newest commit, as they were encoded. */
  #newest: ReadonlyMap<AnyRecord, Uint8Array> = new Map();
  #trouble: ApiError | undefined;
  #notes: AuthorNotes | undefined;
  readonly #measured: CommitMeasures;

  constructor(parts: { store: Store; cache: Cache; log: Logger; buggify?: Buggify; measured?: CommitMeasures }) {
    this.#store = parts.store;
    this.#cache = parts.cache;
    this.#log = parts.log;
    this.#buggify = parts.buggify ?? neverBuggify;
    this.#measured = parts.measured ?? unmeasured;
  }

  /**
   * Lays the Plan over the cache at once, and resolves when the Plan and all Plans it depends on are durable. `ok: false` names a condition
   * that did not hold; then nothing was written. Rejects with `ApiError` `StoreFull` or `Unavailable` when the store failed.
   */
  submit(plan: Plan, author?: PlanAuthor): Promise<CommitOutcome> {
    return new Promise((resolve, reject) =>
      this.enqueue(plan, (fate) => (fate instanceof ApiError ? reject(fate) : resolve(fate)), author),
    );
  }

  /** `submit` with a callback, for many Plans at once: a promise for each would cost too much. */
  enqueue(plan: Plan, told: Told, author?: PlanAuthor): void {
    const why = whyRefused(plan, this.#cache);
    if (why !== undefined)
      return told(new ApiError('Unavailable', `nothing can be written: ${why}`, { details: nothingChanged }));
    // A Plan of conditions only is checked in the store too: another control plane may have written what has not reached this cache.
    if (plan.changes.length === 0 && (plan.conditions ?? none).length === 0)
      return told({ ok: true, revision: this.#cache.revision });
    const first = plan.changes[0] ?? plan.conditions?.[0];
    if (first && this.#buggify('commit-refused')) return told({ ok: false, key: first.key });
    const assumed = this.#cache.assume(plan);
    if (!assumed.ok) return told(assumed);
    this.#lastToken = assumed.token;
    this.#queue.push({
      author,
      assumption: assumed,
      restsOn: assumed.restsOn,
      conditions: none,
      epochAt: this.#epochAt(),
      told,
    });
    this.#busy ??= Promise.resolve().then(() => this.#work());
  }

  /**
   * Resolves when few enough Plans wait for the disk. New requests wait here, first come first served within their project; controllers do
   * not wait. The connection `from` is not read while too many of its requests wait.
   */
  async room(project = unshared, { plans = 1, from }: Wanting = {}): Promise<void> {
    if (!this.isBusy) return this.#turns.note(project);
    const turn = this.#turns.enter(project, { plans, queued: this.#queue.length, from });
    if (turn) await turn;
  }

  /** How many Plans one writer may decide at once. */
  get atOnceMax(): number {
    return this.#turns.atOnceMax;
  }

  /** The encoded form of a record that the newest commit wrote, for a caller that would otherwise encode the record again. */
  writtenNow(record: AnyRecord): Uint8Array | undefined {
    return this.#newest.get(record);
  }

  /** Records the authors of Plans from now on. */
  noteAuthors(notes: AuthorNotes): void {
    this.#notes = notes;
  }

  /** The store's failure at the last commit; undefined: the commit succeeded. */
  get trouble(): ApiError | undefined {
    return this.#trouble;
  }

  /** Whether anything is under way. */
  get isBusy(): boolean {
    return this.#busy !== null;
  }

  /** Resolves when every Plan that is under way now has an outcome. Returns whether there was any. */
  async fates(): Promise<boolean> {
    if (!this.isBusy) return false;
    await new Promise<void>((resolve) => this.#wantFates.push({ upToToken: this.#lastToken, resolve }));
    return true;
  }

  /** Resolves when everything submitted before has an outcome. */
  async settled(): Promise<void> {
    while (this.#busy) await this.#busy;
  }

  async #work(): Promise<void> {
    while (this.#queue.length > 0) {
      const group = this.#takeGroup();
      this.#turns.next(this.#queue.length);
      await this.#commitGroup(group);
      const nextToken = this.#queue[0]?.assumption.token ?? Number.POSITIVE_INFINITY;
      while ((this.#wantFates[0]?.upToToken ?? nextToken) < nextToken) this.#wantFates.shift()?.resolve();
    }
    this.#busy = null;
    this.#turns.idle();
  }

  #takeGroup(): Pending[] {
    let writes = 0;
    let count = 0;
    for (const pending of this.#queue) {
      writes += pending.assumption.plan.changes.length;
      if (count > 0 && (writes > writesPerCommitMax || this.#buggify('commit-one-plan'))) break;
      count += 1;
    }
    return this.#queue.splice(0, count);
  }

  /** Commits a group as one. Plans whose conditions fail are taken out, with all that depend on them, until the conditions of the rest hold. */
  async #commitGroup(group: Pending[]): Promise<void> {
    const older = group.filter(({ epochAt }) => epochAt !== this.#epochAt());
    let rest = older.length === 0 ? group : this.#without(group, older, keys.cluster);
    while (rest.length > 0) {
      const last = lastOf(rest);
      const written = new Map<AnyRecord, Uint8Array>();
      const outcome = await this.#tryCommit(rest, last, written);
      if (outcome === 'failed') return;
      if (outcome.ok) {
        this.#newest = written;
        return this.#confirm(rest, last, outcome.revision);
      }
      const { key } = outcome;
      rest = this.#without(rest, refusedFor(key, rest), key);
    }
  }

  async #tryCommit(
    group: readonly Pending[],
    last: ReadonlyMap<string, AnyRecord | null>,
    written: Map<AnyRecord, Uint8Array>,
  ): Promise<CommitOutcome | 'failed'> {
    const conditions = conditionsOfAll(group);
    if (!last.has(keys.cluster)) conditions.push(this.#ofThisEpoch());
    const writes: Write[] = [];
    last.forEach((record, key) => {
      const value = record && encodeRecord(record);
      writes.push({ key, value });
      if (record && value && 'spec' in record && record.kind !== 'event') written.set(record, value);
    });
    const authors = this.#notes ? authorsOf(group) : noAuthors;
    if (authors.length > 0 && this.#notes) writes.push(this.#notes.noteFor(authors));
    const ended = this.#measured.begins(group.length);
    try {
      const result = await this.#store.commit(conditions, writes);
      ended(result.ok ? 'written' : 'refused');
      if (authors.length > 0) {
        if (result.ok) this.#notes?.committed(authors, result.revision);
        else this.#notes?.dropped(authors);
      }
      this.#cache.silence.noteHeard();
      this.#trouble = undefined;
      return result;
    } catch (error) {
      ended('failed');
      if (isInDoubt(error)) this.#notes?.inDoubt(authors);
      else this.#notes?.dropped(authors);
      this.#fail(group, error);
      return 'failed';
    }
  }

  /**
   * The condition of every commit: the store has not been restored since. A control plane that has not seen the restore yet writes nothing,
   * and Plans from before it are decided again.
   */
  #ofThisEpoch(): Condition {
    return { key: keys.cluster, ifRevision: this.#epochAt() };
  }

  #epochAt(): number {
    return this.#cache.committed('cluster', keys.cluster)?.revision ?? 0;
  }

  #confirm(group: readonly Pending[], last: ReadonlyMap<string, AnyRecord | null>, revision: number): void {
    for (const [key, record] of last)
      if (record?.kind === 'instance' && record.status.phase === 'Scheduled') this.#notePlacement(key, record);
    for (const { assumption } of group) this.#cache.confirm(assumption, revision, last);
    if (writesAny(last)) this.#cache.noteOwn(revision);
    if (this.#queue.length > 0) {
      const newestToken = group.at(-1)?.assumption.token ?? 0; // those in the queue were submitted later
      const written = new Map<number, Plan>();
      for (const [i, pending] of this.#queue.entries()) {
        if (!pending.restsOn.some((token) => token > 0 && token <= newestToken)) continue;
        if (written.size === 0) for (const { assumption } of group) written.set(assumption.token, assumption.plan);
        this.#queue[i] = conditionedOn(pending, written, revision);
      }
    }
    const outcome: CommitOutcome = { ok: true, revision };
    for (const { told } of group) told(outcome);
  }

  #notePlacement(key: string, { metadata, status }: Instance): void {
    const before = this.#cache.committed('instance', key)?.value.status.incarnation ?? 0;
    if (status.incarnation === before || status.scheduledAtMs === undefined) return;
    this.#measured.placed(status.incarnation, status.scheduledAtMs - metadata.createdAtMs);
  }

  /** `group` without `refused` and the Plans that depend on them, which are also removed from the queue. */
  #without(group: readonly Pending[], refused: readonly Pending[], key: string): Pending[] {
    const tokens = new Set(refused.map(({ assumption }) => assumption.token));
    const doomed = [...group, ...this.#queue].filter((pending) => {
      if (pending.restsOn.some((token) => tokens.has(token))) tokens.add(pending.assumption.token);
      return tokens.has(pending.assumption.token);
    });
    for (const { assumption } of doomed.toReversed()) this.#cache.forget(assumption);
    const waiting = this.#queue.filter((pending) => !tokens.has(pending.assumption.token));
    this.#queue.splice(0, this.#queue.length, ...waiting);
    for (const { told } of doomed) told({ ok: false, key });
    return group.filter((pending) => !tokens.has(pending.assumption.token));
  }

  /** The store failed: every Plan that depends on this group fails with it. */
  #fail(group: readonly Pending[], error: unknown): void {
    const doomed = [...group, ...this.#queue.splice(0)];
    for (const { assumption } of doomed.toReversed()) this.#cache.forget(assumption);
    this.#cache.silence.noteDeaf();
    const answer = storeFailure(error);
    this.#trouble = answer;
    this.#log.error('commit failed', { plans: doomed.length, error: answer.message, cause: error });
    for (const { told } of doomed) told(answer);
  }
}

/**
 * The Plans whose condition on `key` does not hold: the first that differs from the store, and those with the same condition. The others
 * may hold once these are out. When the epoch differs: all Plans.
 */
function refusedFor(key: string, group: readonly Pending[]): readonly Pending[] {
  if (key === keys.cluster) return group;
  let wanted: number | undefined;
  const refused = group.filter((pending) => {
    for (const condition of conditionsOf(pending)) {
      if (condition.key !== key) continue;
      wanted ??= condition.ifRevision;
      if (condition.ifRevision === wanted) return true;
    }
    return false;
  });
  assert(refused.length > 0, `the store refused a condition on ${key} that was not set`);
  return refused;
}

/** Whether the commit made a revision of its own. A deletion that found nothing returns the revision of another commit. */
function writesAny(last: ReadonlyMap<string, AnyRecord | null>): boolean {
  for (const record of last.values()) if (record !== null) return true;
  return false;
}

/** The last change of each key in a group. A change that is overwritten within the group, as an instance by its placement, is never encoded. */
function lastOf(group: readonly Pending[]): ReadonlyMap<string, AnyRecord | null> {
  const last = new Map<string, AnyRecord | null>();
  for (const { assumption } of group) for (const { key, value } of assumption.plan.changes) last.set(key, value);
  return last;
}

/** The conditions that the store must check: all but those on changes of other pending Plans. */
function* conditionsOf({ assumption: { plan }, restsOn, conditions }: Pending): Generator<Condition> {
  let at = 0;
  // The key of a new event needs no check: 80 of its bits are random.
  for (const change of plan.changes) if (restsOn[at++] === 0 && !isNewEvent(change)) yield change;
  for (const condition of plan.conditions ?? none) if (restsOn[at++] === 0) yield condition;
  yield* conditions;
}

/** Without duplicates: many Plans have conditions on the same few hosts. */
function conditionsOfAll(group: readonly Pending[]): Condition[] {
  const all: Condition[] = [];
  const asked = new Map<string, number>();
  for (const pending of group) {
    for (const condition of conditionsOf(pending)) {
      const { key, ifRevision } = condition;
      if (ifRevision > 0 && asked.get(key) === ifRevision) continue;
      if (ifRevision > 0) asked.set(key, ifRevision);
      all.push(condition);
    }
  }
  return all;
}

/** In place of a token, for a change that is durable now. */
const isCondition = -1;

/**
 * The changes that `pending` depends on are durable now, so another control plane may change them: dependencies between Plans of this process
 * become conditions on the store.
 */
function conditionedOn(pending: Pending, written: ReadonlyMap<number, Plan>, revision: number): Pending {
  const { changes, conditions = none } = pending.assumption.plan;
  const more: Condition[] = [];
  const restsOn = pending.restsOn.map((token, i) => {
    const plan = written.get(token);
    if (!plan) return token;
    const key = (i < changes.length ? changes[i] : conditions[i - changes.length])?.key;
    const change = plan.changes.find((each) => each.key === key);
    if (change) more.push({ key: change.key, ifRevision: change.value === null ? 0 : revision });
    return isCondition;
  });
  return { ...pending, restsOn, conditions: [...pending.conditions, ...more] };
}

const none: readonly Condition[] = [];
const noAuthors: readonly PlanAuthor[] = [];

/** Counts the Plans that change something. */
function authorsOf(group: readonly Pending[]): readonly PlanAuthor[] {
  return group.flatMap(({ author, assumption }) => (author && assumption.plan.changes.length > 0 ? [author] : []));
}

/** An error that is no `StoreError` may have occurred after the commit. */
function isInDoubt(error: unknown): boolean {
  return !(error instanceof StoreError) || error.outcome === 'unknown';
}

function storeFailure(error: unknown): ApiError {
  if (error instanceof StoreError && error.code === 'Full') {
    return new ApiError('StoreFull', 'the store has no space left; nothing was changed', { cause: error });
  }
  const unknown = isInDoubt(error);
  return new ApiError(
    'Unavailable',
    unknown
      ? 'the store failed while writing, so it is unknown whether the change was made; check, or repeat it with the same idempotency key'
      : 'the store cannot write now; nothing was changed; try again',
    { cause: error, ...(unknown ? {} : { details: nothingChanged }) },
  );
}
