// Cache: the store's records in memory, with this process's own uncommitted Plans laid over them, and the indexes that
// decisions read. It never writes to the store.
//
//   committed entry ── assume(plan) ──▶ assumed on top ── confirm ──▶ committed
//                                            └────────── forget ───▶ removed without a trace

import { equalJson } from '../../base/equal-json.ts';
import { assert } from '../../base/assert.ts';
import { BriefMap } from '../../base/brief-map.ts';
import { Consumers } from './consumers.ts';
import { KeysByGroup } from './few-keys.ts';
import { formsOf, HeldAllocations, holdSame, hostsOf } from './held-allocations.ts';
import { kindOfKey } from './keys.ts';
import { type Assumed, type Layers, LayersByKey, layersOf } from './layers.ts';
import type { Change, Plan } from './plan.ts';
import type { Allocation, AnyRecord, Provider, RecordByKind, RecordKind } from './records.ts';
import { Silence } from './silence.ts';
import type { Entry, RecordChange, Snapshot, View } from './snapshot.ts';

/** A Plan laid over the entries, to be confirmed or forgotten. */
export interface Assumption {
  readonly ok: true;
  readonly token: number;
  readonly plan: Plan;
  /** For each change, the entry of its key; undefined for a new event, which no decision reads. */
  readonly layers: readonly (Layers | undefined)[];
  /** For each change, then each condition: the token of the uncommitted change that it depends on, or 0. */
  readonly restsOn: readonly number[];
}

/** What decisions saw under a key; `forms`: all possible forms of an allocation. */
interface Was {
  readonly before: AnyRecord | null;
  readonly forms: readonly Allocation[];
}

export interface StoredEvent {
  readonly key: string;
  readonly value: AnyRecord | null;
  readonly revision: number;
}

/** A list in progress, whose entries become the committed ones. */
export interface Listing {
  /** Each key once. */
  take(entries: readonly StoredEvent[]): void;
  /** `changes`: the last change of each key made while listing, in any order; `revision`: of the whole list. */
  end(changes: readonly StoredEvent[], revision: number): void;
}

/** Called for every change of what decisions see, after all views have applied it. */
export type ChangeListener = (change: RecordChange) => void;

/** Called with a key whose committed entry may have changed, or whose assumed change was forgotten. */
export type CommittedListener = (key: string) => void;

export class Cache implements Snapshot {
  /** Every event up to this revision is applied. */
  revision = 0;
  /** Nothing above this revision is applied. Own commits are applied before their events arrive. */
  newestRevision = 0;

  readonly #committed = new Map<RecordKind, Map<string, Entry>>();
  /** Revisions of deleted keys, until `revision` passes them: an older event must not restore them. */
  readonly #deletedAt = new BriefMap<string, number>();
  readonly #layers = new LayersByKey();
  readonly #views: View[] = [];
  readonly #changeListeners = new Set<ChangeListener>();
  readonly #committedListeners = new Set<CommittedListener>();
  readonly #revisionListeners = new Set<() => void>();
  #lastToken = 0;

  readonly #consumers = new Consumers();
  readonly #providerKeysByHost = new KeysByGroup();
  readonly #held = new HeldAllocations();
  readonly #pendingInstanceKeys = new BriefMap<string, true>();
  readonly #imageKeyByName = new Map<string, string>();
  /** A list has begun and not ended. */
  #filling = false;
  /** Keys whose listeners were not called yet. */
  readonly #untold: string[] = [];
  /** Revisions with nothing but confirmed writes of this process, until their events arrive. */
  readonly #own = new Set<number>();
  /** Failure detection, fed with the observed leases. */
  readonly silence: Silence;

  /** `monotonicNowMs` dates the leases when they are observed. */
  constructor(monotonicNowMs: () => number) {
    this.silence = new Silence(monotonicNowMs);
  }

  // Reads for decisions: assumed over committed.

  get<K extends RecordKind>(kind: K, key: string): Entry<RecordByKind[K]> | undefined {
    const layers = this.#layers.get(key);
    if (!layers) return this.committed(kind, key);
    const top = layers.assumed.at(-1);
    if (!top) return layers.committed as Entry<RecordByKind[K]> | undefined; // the codec: the key tells the kind
    if (top.value === null) return undefined;
    return { key, value: top.value as RecordByKind[K], revision: -top.token }; // the codec: the key tells the kind
  }

  *list<K extends RecordKind>(kind: K): Iterable<Entry<RecordByKind[K]>> {
    for (const [key, committed] of this.#committed.get(kind) ?? []) {
      const entry = this.#layers.get(key) ? this.get(kind, key) : committed;
      if (entry) yield entry as Entry<RecordByKind[K]>; // the codec: the key tells the kind
    }
    for (const layers of this.#layers.assumed()) {
      if (layers.kind !== kind || layers.committed) continue;
      const entry = this.get(kind, layers.key);
      if (entry) yield entry;
    }
  }

  count(kind: RecordKind): number {
    return this.#committed.get(kind)?.size ?? 0;
  }

  *goneUncommitted<K extends RecordKind>(kind: K): Iterable<RecordByKind[K]> {
    for (const layers of this.#layers.assumed()) {
      if (layers.kind !== kind || layers.assumed.at(-1)?.value !== null) continue;
      const record = layers.assumed.findLast(({ value }) => value !== null)?.value ?? layers.committed?.value;
      if (record) yield record as RecordByKind[K]; // the codec: the key tells the kind
    }
  }

  instanceById(id: string): Entry<RecordByKind['instance']> | undefined {
    const key = this.#consumers.instanceKey(id);
    return key === undefined ? undefined : this.get('instance', key);
  }

  providersOfHost(host: string): readonly Entry<Provider>[] {
    return this.#providerKeysByHost.of(host).flatMap((key) => this.get('provider', key) ?? []);
  }

  *allocationsOnHost(host: string): Iterable<Entry<Allocation>> {
    for (const key of this.#held.keysOn(host)) {
      const entry = this.get('allocation', key);
      if (entry?.value.host === host) yield entry;
    }
  }

  /** Only what is durable: an assumed release has not happened yet. */
  *committedAllocationsOnHost(host: string): Iterable<Entry<Allocation>> {
    for (const key of this.#held.keysOn(host)) {
      const entry = this.committed('allocation', key);
      if (entry?.value.host === host) yield entry;
    }
  }

  allocationsHeldOnHost(host: string): Iterable<Allocation> {
    return this.#heldUnder(this.#held.keysOn(host), host);
  }

  *portsHeldOnHost(host: string): Iterable<string> {
    for (const { ports } of this.#heldUnder(this.#held.portKeysOn(host), host)) yield* ports ?? [];
  }

  *#heldUnder(keys: Iterable<string>, host: string): Iterable<Allocation> {
    const committed = this.#committed.get('allocation');
    for (const key of keys) {
      const layers = this.#layers.get(key);
      // Nearly always none: at a start all entries are read.
      const forms = layers ? formsOf(layers) : [committed?.get(key)?.value];
      for (const form of forms) if (form?.kind === 'allocation' && form.host === host) yield form;
    }
  }

  heldOnHost(host: string): number {
    return this.#held.countOn(host);
  }

  allocationsOfConsumer(id: string): readonly Entry<Allocation>[] {
    return this.#consumers.allocationKeys(id).flatMap((key) => this.get('allocation', key) ?? []);
  }

  pendingInstanceKeys(): Iterable<string> {
    return this.#pendingInstanceKeys.keys();
  }

  usedBy(providerId: string): ReadonlyMap<string, number> {
    return this.#held.usedBy(providerId);
  }

  imageByName(name: string): Entry<RecordByKind['image']> | undefined {
    const key = this.#imageKeyByName.get(name);
    return this.get('image', `images/${name}`) ?? (key === undefined ? undefined : this.get('image', key));
  }

  leaseSeenAtMs(host: string): number | undefined {
    return this.silence.seenAtMs(host);
  }

  leaseLostAtMs(host: string): number {
    return this.silence.lostAtMs(host);
  }

  // Reads for users: only what is durable.

  committed<K extends RecordKind>(kind: K, key: string): Entry<RecordByKind[K]> | undefined {
    return this.#committed.get(kind)?.get(key) as Entry<RecordByKind[K]> | undefined; // the codec: the key tells the kind
  }

  /** Whether this process has written the key and does not know yet whether that is durable. */
  isAssumed(key: string): boolean {
    return (this.#layers.get(key)?.assumed.length ?? 0) > 0;
  }

  /** The caller knows that a revision contains nothing but what it has confirmed. */
  noteOwn(revision: number): void {
    this.#own.add(revision);
  }

  isOwn(revision: number): boolean {
    return this.#own.has(revision);
  }

  /** Whether everything up to `upTo` is applied, from events or from own commits. */
  holds(upTo: number): boolean {
    for (let revision = this.revision + 1; revision <= upTo; revision++) if (!this.#own.has(revision)) return false;
    return true;
  }

  /** Whether an event with this key and revision would change nothing, so that it need not be read. */
  knows(key: string, revision: number): boolean {
    const kind = kindOfKey(key);
    return kind === undefined || this.#revisionOf(this.#committed.get(kind)?.get(key), key) >= revision;
  }

  *listCommitted<K extends RecordKind>(kind: K): Iterable<Entry<RecordByKind[K]>> {
    for (const entry of this.#committed.get(kind)?.values() ?? []) yield entry as Entry<RecordByKind[K]>; // as above
  }

  // Changes.

  /** Lays a Plan over the entries, or returns the key of the first condition that does not hold. */
  assume(plan: Plan): Assumption | { readonly ok: false; readonly key: string } {
    const { changes, conditions = noConditions } = plan;
    assert(!this.#filling, 'nothing is decided on a state of which only a part is there');
    assertApart(changes);
    const layers = changes.map((change) => (isNewEvent(change) ? undefined : this.#find(change.key)));
    let at = 0;
    for (const { key, ifRevision } of changes) if (!holds(layers[at++], ifRevision)) return { ok: false, key };
    const restsOn = layers.map(newestToken);
    for (const { key, ifRevision } of conditions) {
      const found = this.#find(key);
      if (!holds(found, ifRevision)) return { ok: false, key };
      restsOn.push(newestToken(found));
    }
    const token = ++this.#lastToken;
    at = 0;
    for (const { value } of changes) this.#lay(layers[at++], { token, value });
    return { ok: true, token, plan, layers, restsOn };
  }

  /**
   * A Plan is durable at `revision`. `last`: the final change of each key by all Plans that share the revision; an
   * overwritten change is in no event and never seen.
   */
  confirm(assumption: Assumption, revision: number, last?: ReadonlyMap<string, AnyRecord | null>): void {
    const { plan, layers, token } = assumption;
    // An empty Plan learns the revision of the store; no reader has to wait for it.
    if (plan.changes.length > 0) this.newestRevision = Math.max(this.newestRevision, revision);
    let at = 0;
    for (const { key, value } of plan.changes) {
      const under = layers[at++];
      // A change with nothing assumed over it is the last.
      const overwritten =
        last !== undefined && under !== undefined && under.assumed.length > 1 && last.get(key) !== value;
      const durable = overwritten ? null : { key, value, revision };
      if (under) this.#take(under, token, durable);
      else if (durable) this.#setCommitted(layersOf(key, undefined), 'event', durable, 'own');
    }
    for (const { key } of plan.changes) this.#tellCommitted(key);
  }

  /** A Plan was not committed. The committer must also forget the Plans laid over it. */
  forget({ plan, layers, token }: Assumption): void {
    for (const each of layers) this.#take(each, token, null);
    for (const { key } of plan.changes) this.#tellCommitted(key);
  }

  /** Applies events of the store in revision order. Own commits arrive again and change nothing. */
  apply(events: readonly StoredEvent[], upTo: number): void {
    this.silence.noteHeard();
    for (const event of events) {
      if (this.#applyEvent(event)) this.#untold.push(event.key);
    }
    this.revision = Math.max(this.revision, upTo);
    this.newestRevision = Math.max(this.newestRevision, upTo);
    if (this.#deletedAt.size > 0)
      for (const [key, revision] of this.#deletedAt) if (revision <= this.revision) this.#deletedAt.delete(key);
    if (this.#own.size > 0) for (const revision of this.#own) if (revision <= this.revision) this.#own.delete(revision);
    for (const key of this.#untold.splice(0)) this.#tellCommitted(key);
    for (const listener of this.#revisionListeners) listener();
  }

  /** Makes the committed entries exactly `entries`, after a list. */
  reset(entries: readonly StoredEvent[], revision: number): void {
    const listing = this.beginReset();
    listing.take(entries);
    listing.end([], revision);
  }

  /**
   * Replaces the committed entries by those of a list that arrives in portions. An empty cache applies them as they
   * arrive, so that a start need not wait for the last portion. Until the end it has no revision, nothing may be
   * assumed over it, and only views and `onChange` see it. A cache with a state keeps that state until the end.
   */
  beginReset(): Listing {
    const hasBegun = this.newestRevision > 0 || this.#committed.size > 0 || this.#layers.size > 0;
    if (hasBegun) return this.#replacing();
    this.#filling = true;
    return {
      take: (entries) => this.#fill(entries),
      end: (changes, revision) => {
        this.#filling = false;
        this.apply(changes, revision);
      },
    };
  }

  #replacing(): Listing {
    const listed = new Map<string, StoredEvent>();
    const lay = (entries: readonly StoredEvent[]): void => {
      for (const entry of entries) listed.set(entry.key, entry);
    };
    return {
      take: lay,
      end: (changes, revision) => {
        this.#filling = false; // left by a failed list
        lay(changes);
        for (const kind of this.#committed.values())
          for (const key of kind.keys()) if (!listed.has(key)) listed.set(key, { key, value: null, revision });
        this.apply([...listed.values()], revision);
      },
    };
  }

  follow(view: View): void {
    this.#views.push(view);
  }

  onChange(listener: ChangeListener): () => void {
    this.#changeListeners.add(listener);
    return () => this.#changeListeners.delete(listener);
  }

  onCommitted(listener: CommittedListener): () => void {
    this.#committedListeners.add(listener);
    return () => this.#committedListeners.delete(listener);
  }

  /** Calls `listener` after `revision` may have grown. */
  onRevision(listener: () => void): () => void {
    this.#revisionListeners.add(listener);
    return () => this.#revisionListeners.delete(listener);
  }

  // Below: how the two layers and the indexes are maintained.

  /** Everything known under a key. */
  #find(key: string): Layers {
    const layers = this.#layers.get(key);
    if (layers) return layers;
    const kind = kindOfKey(key);
    return layersOf(key, kind && this.#committed.get(kind)?.get(key));
  }

  /** Applies entries of a list to an empty cache, where each is new: a start has hundreds of thousands of these. */
  #fill(entries: readonly StoredEvent[]): void {
    for (const entry of entries) {
      const { key } = entry;
      const kind = kindOfKey(key);
      if (kind === undefined || !isPut(entry)) continue;
      let known = this.#committed.get(kind);
      if (!known) this.#committed.set(kind, (known = new Map()));
      known.set(key, entry);
      if (kind === 'allocation') this.#alterAllocation(key, nothingWas, wasOf(layersOf(key, entry)));
      else this.#changed(key, kind, null, entry.value);
      this.#untold.push(key);
    }
  }

  /** Lays one change over those of its key. */
  #lay(layers: Layers | undefined, assumed: Assumed): void {
    if (!layers?.kind) return; // written by a newer version, which this one cannot read
    const was = wasOf(layers);
    this.#layers.push(layers, assumed);
    this.#altered(layers, layers.kind, was);
  }

  /** Removes a change from its key, and applies its outcome to the committed entries. */
  #take(layers: Layers | undefined, token: number, durable: StoredEvent | null): void {
    if (!layers?.kind) return;
    const was = wasOf(layers);
    const taken = this.#layers.take(layers, token);
    assert(taken, () => `${layers.key} holds no assumed change ${token}`);
    if (durable) this.#setCommitted(layers, layers.kind, durable, 'own');
    this.#altered(layers, layers.kind, was);
  }

  /** Returns whether the event changed anything. */
  #applyEvent(event: StoredEvent): boolean {
    const layers = this.#find(event.key);
    if (!layers.kind) return false;
    const was = wasOf(layers);
    if (!this.#setCommitted(layers, layers.kind, event, 'event')) return false;
    this.#altered(layers, layers.kind, was);
    return true;
  }

  /** Compares what decisions saw under a key with what they see now. */
  #altered(layers: Layers, kind: RecordKind, was: Was): void {
    const { key } = layers;
    const is = wasOf(layers);
    if (kind === 'allocation') this.#alterAllocation(key, was, is);
    else if (was.before !== is.before) this.#changed(key, kind, was.before, is.before);
  }

  #alterAllocation(key: string, { before, forms: formsBefore }: Was, { before: after, forms: formsAfter }: Was): void {
    this.#held.apply(key, { before: formsBefore, after: formsAfter });
    const [formBefore] = formsBefore;
    if (before !== after) this.#changed(key, 'allocation', before, after);
    // A release became durable: decisions knew it, but the room is free only now.
    else if (!holdSame(formsBefore, formsAfter))
      this.#tell({ key, kind: 'allocation', before: formBefore ?? null, after, onlyHeld: true });
    else return;
    // Two control planes may have placed it on two hosts at once: both hold room for it until one of the Plans fails.
    const told = hostOf(after) ?? hostOf(before) ?? formBefore?.host;
    for (const host of hostsOf(formsBefore, formsAfter)) {
      if (host === told) continue;
      const there = (forms: readonly Allocation[]): Allocation | null =>
        forms.find((form) => form.host === host) ?? null;
      this.#tell({ key, kind: 'allocation', before: there(formsBefore), after: there(formsAfter), onlyHeld: true });
    }
  }

  #changed(key: string, kind: RecordKind, before: AnyRecord | null, after: AnyRecord | null): void {
    if (onlyMarked(before, after)) return;
    if (kind === 'instance') this.#indexPending(key, after);
    if (!sameInIndexes(before, after)) {
      if (before) this.#index(key, before, -1);
      if (after) this.#index(key, after, +1);
    }
    this.#tell({ key, kind, before, after });
  }

  #tell(change: RecordChange): void {
    for (const view of this.#views) view.apply(change);
    for (const listener of this.#changeListeners) listener(change);
  }

  /**
   * Several own Plans may share a revision, and the later one wins; an event that repeats one of them changes nothing.
   */
  #setCommitted(layers: Layers, kind: RecordKind, event: StoredEvent, source: 'own' | 'event'): boolean {
    const { key, revision } = event;
    let entries = this.#committed.get(kind);
    if (!entries) this.#committed.set(kind, (entries = new Map()));
    const known = this.#revisionOf(layers.committed, key);
    // An own commit that is confirmed after its event is old: another control plane may have deleted the key since.
    if (source === 'own' ? revision < known || revision <= this.revision : revision <= known) return false;
    if (!isPut(event)) {
      layers.committed = undefined;
      if (revision > this.revision) this.#deletedAt.set(key, revision);
      if (entries.size > 1 || !entries.has(key)) return entries.delete(key);
      this.#committed.set(kind, new Map()); // see BriefMap: an emptied Map keeps its memory
      return true;
    }
    if (this.#deletedAt.size > 0) this.#deletedAt.delete(key);
    layers.committed = event;
    entries.set(key, layers.committed);
    return true;
  }

  /** The revision of the newest applied change of a key, including a deletion; 0: none is known. */
  #revisionOf(committed: Entry | undefined, key: string): number {
    return committed?.revision ?? (this.#deletedAt.size > 0 ? this.#deletedAt.get(key) : undefined) ?? 0;
  }

  #tellCommitted(key: string): void {
    for (const listener of this.#committedListeners) listener(key);
  }

  #indexPending(key: string, after: AnyRecord | null): void {
    if (after?.kind === 'instance' && after.status.phase === 'Pending') this.#pendingInstanceKeys.set(key, true);
    else this.#pendingInstanceKeys.delete(key);
  }

  #index(key: string, value: AnyRecord, sign: 1 | -1): void {
    switch (value.kind) {
      case 'instance':
        return this.#consumers[sign > 0 ? 'setInstance' : 'deleteInstance'](value.metadata.id, key);
      case 'provider':
        return this.#providerKeysByHost[sign > 0 ? 'add' : 'delete'](value.host, key);
      case 'allocation':
        return this.#consumers[sign > 0 ? 'addAllocation' : 'deleteAllocation'](value.consumer.id, key);
      case 'lease':
        if (sign > 0) this.silence.noteHeartbeat(value.host);
        else this.silence.forget(value.host);
        return;
      case 'image':
        for (const alias of value.spec.aliases) {
          if (sign > 0) this.#imageKeyByName.set(alias, key);
          else if (this.#imageKeyByName.get(alias) === key) this.#imageKeyByName.delete(alias);
        }
        return;
      default:
    }
  }
}

function isPut(event: StoredEvent): event is Entry {
  return event.value !== null;
}

function wasOf(layers: Layers): Was {
  const { committed, assumed } = layers;
  const top = assumed.at(-1);
  return { before: top ? top.value : (committed?.value ?? null), forms: formsOf(layers) };
}

const nothingWas: Was = { before: null, forms: [] };

/** The token of the uncommitted change that a decision on this key depends on, 0 for none. */
function newestToken(layers: Layers | undefined): number {
  return layers?.assumed.at(-1)?.token ?? 0;
}

/** Before anything is laid: an invalid Plan must leave nothing behind. */
function assertApart(changes: readonly Change[]): void {
  if (changes.length > 8) {
    const seen = new Set<string>();
    for (const { key } of changes) assert(seen.size < seen.add(key).size, () => `a Plan changes ${key} twice`);
    return;
  }
  let before = 0;
  for (const { key } of changes) {
    for (let i = 0; i < before; i++) assert(changes[i]?.key !== key, () => `a Plan changes ${key} twice`);
    before += 1;
  }
}

/** Events, on which no decision depends. */
export function isNewEvent({ ifRevision, value }: Change): boolean {
  return value !== null && value.kind === 'event' && ifRevision === 0;
}

/** Whether a key is at this revision. */
function holds(layers: Layers | undefined, ifRevision: number): boolean {
  const top = layers?.assumed.at(-1);
  if (top) return ifRevision === (top.value === null ? 0 : -top.token);
  return ifRevision === (layers?.committed?.revision ?? 0);
}

const noConditions: readonly [] = [];

/** A claim rewrites the provider's generation: that makes concurrent claims fail, and no decision reads it. */
function onlyMarked(before: AnyRecord | null, after: AnyRecord | null): boolean {
  return (
    before?.kind === 'provider' &&
    after?.kind === 'provider' &&
    equalJson(before.inventories, after.inventories) &&
    equalJson(before.traits, after.traits) &&
    equalJson(before.aggregates, after.aggregates) &&
    before.host === after.host &&
    before.parent === after.parent &&
    equalJson(before.outside, after.outside)
  );
}

/** Most changes concern an instance's status, which is in no index but the pending one. */
function sameInIndexes(before: AnyRecord | null, after: AnyRecord | null): boolean {
  return before?.kind === 'instance' && after?.kind === 'instance' && before.metadata.id === after.metadata.id;
}

function hostOf(record: AnyRecord | null): string | undefined {
  return record?.kind === 'allocation' ? record.host : undefined;
}
