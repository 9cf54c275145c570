// The model test of the conformance suite: eight writers send random commands to a store concurrently, and a watcher
// follows; afterwards every result is compared with a plain sequential map. It never depends on timing.

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { assert } from '../base/assert.ts';
import { system } from '../base/system.ts';
import {
  Compacted,
  type Condition,
  type Entry,
  type Key,
  type Revision,
  type Store,
  type WatchEvent,
  type Write,
} from './store.ts';

const writers = 8;
const keys = ['a', 'a/b', 'a/c', 'a0', 'a~', 'b', 'b/a', 'b/b'] as const;
const prefixes = ['', 'a', 'a/', 'a~', 'b/', 'c'] as const;

/** A commit that returned ok. */
interface Committed {
  readonly conditions: readonly Condition[];
  readonly writes: readonly Write[];
  readonly revision: Revision;
}

type Guess = 'current' | 'stale' | 'absent' | 'none';
type Command =
  | { readonly type: 'get'; readonly key: Key }
  | {
      readonly type: 'list';
      readonly prefix: string;
      readonly limit: number | undefined;
      readonly after: Key | undefined;
    }
  | {
      readonly type: 'commit';
      readonly guards: readonly { readonly key: Key; readonly guess: Guess }[];
      readonly writes: readonly Write[];
      readonly awaited: boolean;
    }
  | { readonly type: 'compact'; readonly share: number }
  | { readonly type: 'watch'; readonly prefix: string; readonly share: number }
  | { readonly type: 'pause'; readonly turns: number };

const key = fc.constantFrom(...keys);
const prefix = fc.constantFrom(...prefixes);
const write = fc.record({ key, value: fc.option(fc.uint8Array({ maxLength: 8 }), { freq: 3 }) });
const guard = fc.record({
  key,
  guess: fc.constantFrom<Guess>('current', 'current', 'current', 'stale', 'absent', 'none'),
});
const percent = fc.integer({ min: 0, max: 100 });
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constant('commit' as const),
      guards: fc.array(guard, { maxLength: 3 }),
      writes: fc.uniqueArray(write, { maxLength: 4, selector: (one) => one.key }),
      awaited: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('get' as const), key }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('list' as const),
      prefix,
      limit: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
      after: fc.option(key, { nil: undefined }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('compact' as const), share: percent }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('watch' as const), prefix, share: percent }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('pause' as const), turns: fc.integer({ min: 1, max: 5 }) }) },
);
const scripts = fc.array(fc.array(command, { maxLength: 20 }), { minLength: writers, maxLength: writers });

export function modelConformance(open: () => Promise<Store>, runs: number): void {
  it(`${writers} writers and a watcher see one history, in ${runs} random plays`, async () => {
    let commits = 0;
    await fc.assert(
      fc.asyncProperty(scripts, async (play) => {
        const store = await open();
        const history = new Recorder(store);
        const watcher = watchAll(store);
        await Promise.all(play.map((script) => runScript(history, script)));
        const last = await history.commit([], [{ key: 'end', value: new Uint8Array() }]);
        if (!last.ok) throw new Error('a commit without conditions failed');
        const model = history.check(last.revision);
        checkWatcher(await watcher, model);
        expect(await store.list('')).toEqual({ entries: model.entriesAt(last.revision, ''), revision: last.revision });
        commits += last.revision;
        await store.close();
      }),
      { numRuns: runs },
    );
    expect(commits).toBeGreaterThan(runs); // the runs did commit something
  });
}

/** Every result of the store with what was known at its request. */
class Recorder {
  readonly store: Store;
  readonly commits: Committed[] = [];
  readonly checks: ((model: Model) => void)[] = [];
  /** The highest revision returned so far. */
  known: Revision = 0;
  compactedBefore: Revision = 0;
  markers = 0;
  /** The last seen revision of each key, and the one before. */
  readonly seen = new Map<Key, { current: Revision; stale: Revision }>();

  constructor(store: Store) {
    this.store = store;
  }

  sees(key: Key, revision: Revision): void {
    const before = this.seen.get(key);
    if (before?.current !== revision) this.seen.set(key, { current: revision, stale: before?.current ?? 0 });
  }

  knows(revision: Revision): void {
    this.known = Math.max(this.known, revision);
  }

  async commit(conditions: readonly Condition[], writes: readonly Write[]) {
    const result = await this.store.commit(conditions, writes);
    if (result.ok) {
      this.knows(result.revision);
      this.commits.push({ conditions, writes, revision: result.revision });
      for (const { key, value } of writes) this.sees(key, value === null ? 0 : result.revision);
    }
    return result;
  }

  /** Builds the model from exactly the commits that returned ok, and compares all other results with it. */
  check(last: Revision): Model {
    const model = new Model();
    const byRevision = Map.groupBy(this.commits, ({ revision }) => revision);
    for (let revision = 1; revision <= last; revision++) {
      const answered = byRevision.get(revision) ?? [];
      // Commits that changed nothing return the revision of another: the one with the most changes made it.
      const changes = (one: Committed): number => model.changesOf(one.writes).length;
      const [author, ...others] = answered.sort((a, b) => changes(b) - changes(a));
      if (!author || changes(author) === 0) throw new Error(`no commit made revision ${revision}`);
      model.expectHeld(author.conditions);
      model.apply(author.writes);
      for (const other of others) {
        assert(changes(other) === 0, `two commits made revision ${revision}`);
        model.expectHeld(other.conditions);
      }
    }
    assert(Math.max(...byRevision.keys()) === last, 'no commit was answered a revision after the last');
    for (const check of this.checks) check(model);
    return model;
  }
}

/** The sequential truth: the state after each revision, and its events. */
class Model {
  readonly states: ReadonlyMap<Key, Entry>[] = [new Map()];
  readonly events: WatchEvent[] = [];

  get last(): Revision {
    return this.states.length - 1;
  }

  stateAt(revision: Revision): ReadonlyMap<Key, Entry> {
    const state = this.states[revision];
    if (!state) throw new Error(`the store answered revision ${revision}; the last is ${this.last}`);
    return state;
  }

  /** The writes that would change the last state. */
  changesOf(writes: readonly Write[]): Write[] {
    return writes.filter(({ key, value }) => value !== null || this.stateAt(this.last).has(key));
  }

  expectHeld(conditions: readonly Condition[]): void {
    for (const { key, ifRevision } of conditions)
      assert(
        (this.stateAt(this.last).get(key)?.revision ?? 0) === ifRevision,
        `a commit was answered ok, yet its condition on ${key} did not hold at ${this.last}`,
      );
  }

  apply(writes: readonly Write[]): void {
    const revision = this.last + 1;
    const state = new Map(this.stateAt(this.last));
    for (const { key, value } of this.changesOf(writes)) {
      if (value === null) state.delete(key);
      else state.set(key, { key, value, revision });
      this.events.push({ key, value, revision });
    }
    this.states.push(state);
  }

  entriesAt(revision: Revision, prefix: string): Entry[] {
    const entries = [...this.stateAt(revision).values()].filter(({ key }) => key.startsWith(prefix));
    return entries.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** True when `holds` at some moment between two revisions. */
  atSomeMoment(from: Revision, to: Revision, holds: (state: ReadonlyMap<Key, Entry>) => boolean): boolean {
    return this.states.slice(from, to + 1).some(holds);
  }
}

async function runScript(history: Recorder, script: readonly Command[]): Promise<void> {
  const begun: Promise<void>[] = [];
  for (const one of script) {
    const running = runCommand(history, one);
    begun.push(running);
    if (one.type !== 'commit' || one.awaited) await running;
  }
  await Promise.all(begun);
}

async function runCommand(history: Recorder, one: Command): Promise<void> {
  const { store } = history;
  const from = history.known;
  switch (one.type) {
    case 'get': {
      const entry = await store.get(one.key);
      history.sees(one.key, entry?.revision ?? 0);
      history.checks.push((model) => {
        const found = model.atSomeMoment(from, model.last, (state) => sameEntry(state.get(one.key) ?? null, entry));
        expect(found, `get of ${one.key} answered a value it had`).toBe(true);
      });
      return;
    }
    case 'list': {
      const { entries, revision } = await store.list(one.prefix, {
        ...(one.limit === undefined ? {} : { limit: one.limit }),
        ...(one.after === undefined ? {} : { after: one.after }),
      });
      for (const entry of entries) history.sees(entry.key, entry.revision);
      history.knows(revision);
      history.checks.push((model) => {
        expect(revision).toBeGreaterThanOrEqual(from);
        const after = one.after;
        const all = model.entriesAt(revision, one.prefix).filter((entry) => after === undefined || entry.key > after);
        expect(entries).toEqual(all.slice(0, one.limit));
      });
      return;
    }
    case 'commit':
      return runCommit(history, one, from);
    case 'compact': {
      const before = Math.floor((history.known * one.share) / 100);
      history.compactedBefore = Math.max(history.compactedBefore, before);
      await store.compact(before);
      return;
    }
    case 'watch': {
      const after = Math.floor((history.known * one.share) / 100);
      // A marker key under the prefix ends the watch.
      const marker = { key: `${one.prefix}~marker ${history.markers++}`, value: new Uint8Array() };
      const marked = await history.commit([], [marker]);
      if (!marked.ok) throw new Error('a commit without conditions failed');
      const through = marked.revision;
      const events = await eventsThrough(store, one.prefix, after, through);
      const { compactedBefore } = history;
      history.checks.push((model) => {
        if (events === 'compacted') return expect(compactedBefore).toBeGreaterThan(after + 1);
        const wanted = model.events.filter(
          ({ key, revision }) => revision > after && revision <= through && key.startsWith(one.prefix),
        );
        expect(events).toEqual(wanted);
      });
      return;
    }
    case 'pause':
      for (let i = 0; i < one.turns; i++) await new Promise<void>((resolve) => system.afterTurn(resolve));
      return;
  }
}

async function runCommit(history: Recorder, one: Extract<Command, { type: 'commit' }>, from: Revision): Promise<void> {
  const conditions = one.guards
    .filter(({ guess }) => guess !== 'none')
    .map(({ key, guess }) => {
      const seen = history.seen.get(key) ?? { current: 0, stale: 0 };
      return { key, ifRevision: guess === 'absent' ? 0 : seen[guess === 'stale' ? 'stale' : 'current'] };
    });
  const result = await history.commit(conditions, one.writes);
  if (result.ok) {
    history.checks.push(() => expect(result.revision).toBeGreaterThanOrEqual(from));
    return;
  }
  history.sees(result.key, (await history.store.get(result.key))?.revision ?? 0);
  history.checks.push((model) => {
    const plausible = model.atSomeMoment(from, model.last, (state) => {
      const failed = conditions.find(({ key, ifRevision }) => (state.get(key)?.revision ?? 0) !== ifRevision);
      return failed?.key === result.key;
    });
    expect(plausible, `the condition on ${result.key} was the first to fail at some moment`).toBe(true);
  });
}

/** Follows everything from the start to the key "end"; starts again from a list when it was too slow, like a cache. */
async function watchAll(
  store: Store,
): Promise<{ lists: { entries: Entry[]; revision: Revision }[]; events: WatchEvent[] }> {
  const lists: { entries: Entry[]; revision: Revision }[] = [];
  const events: WatchEvent[] = [];
  let after = 0;
  for (;;) {
    try {
      for await (const batch of store.watch('', after, new AbortController().signal)) {
        events.push(...batch);
        after = batch.at(-1)?.revision ?? after;
        if (batch.some((event) => event.key === 'end')) return { lists, events };
      }
      throw new Error('the watch ended by itself');
    } catch (error) {
      if (!(error instanceof Compacted)) throw error;
      const list = await store.list('');
      expect(list.revision, 'a list is newer than what was compacted').toBeGreaterThan(after);
      lists.push(list);
      after = list.revision;
      if (list.entries.some((entry) => entry.key === 'end')) return { lists, events };
    }
  }
}

/** Every event once, in order; only those that a list replaced may be missing. */
function checkWatcher(seen: Awaited<ReturnType<typeof watchAll>>, model: Model): void {
  let events = seen.events;
  let after = 0;
  for (const list of seen.lists) {
    expect(list.entries).toEqual(model.entriesAt(list.revision, ''));
    const before = events.filter((event) => event.revision <= list.revision);
    const reached = before.at(-1)?.revision ?? after;
    expect(before).toEqual(model.events.filter((event) => event.revision > after && event.revision <= reached));
    events = events.slice(before.length);
    after = list.revision;
  }
  expect(events).toEqual(model.events.filter((event) => event.revision > after));
}

async function eventsThrough(
  store: Store,
  prefix: string,
  after: Revision,
  through: Revision,
): Promise<WatchEvent[] | 'compacted'> {
  const events: WatchEvent[] = [];
  const done = new AbortController();
  try {
    for await (const batch of store.watch(prefix, after, done.signal)) {
      events.push(...batch.filter((event) => event.revision <= through));
      if ((batch.at(-1)?.revision ?? 0) >= through) return events;
    }
    throw new Error('the watch ended by itself');
  } catch (error) {
    if (error instanceof Compacted) return 'compacted';
    throw error;
  } finally {
    done.abort();
  }
}

function sameEntry(a: Entry | null, b: Entry | null): boolean {
  return a === b || (a !== null && b !== null && a.revision === b.revision && Buffer.compare(a.value, b.value) === 0);
}
