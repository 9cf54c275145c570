// Queue: the instances that wait for a host, in order (order.ts), and which of them a change can help. An instance that does not fit is
// tried again only when room was freed that could take it; of many with one shape only the first, and the next once that one is placed.
//
//   created, released, changed ──▶ due ──take──▶ tried ──▶ placed (the next of its shape is due)
//                                   ▲              │
//                                   └── room came ─┴─▶ waits, with the reason
//
// It never decides on a placement, and correctness does not depend on it: a periodic full pass makes all instances due.

import { equalJson } from '../../base/equal-json.ts';
import { BriefMap } from '../../base/brief-map.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { type Fleet, fleetOf } from '../scheduler/fleet.ts';
import { hostPlugins, roomPlugins } from '../scheduler/registry.ts';
import { type Request, requestOf } from '../scheduler/request.ts';
import { engineOf } from '../scheduler/schedule.ts';
import { taskOf } from '../scheduler/take-over.ts';
import { prepareRules } from '../scheduler/engine/verdicts.ts';
import { vocabularyOf } from '../scheduler/vocabulary.ts';
import { defaultPolicy, type Policy } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import type { AnyRecord } from '../state/records.ts';
import { defineView, type RecordChange, type Snapshot, type View } from '../state/snapshot.ts';
import { ByGroup } from './by-group.ts';
import { type DueLine, DueLines } from './due-lines.ts';
import { gangKeyOf } from './gangs.ts';
import { countAsked, describeLimit, type Limit, LimitCounts, type LimitPolicy, limitsOn } from './limits.ts';
import { compareAcross, compareAges, type Rank } from './order.ts';
import { placingOrder } from './placing-order.ts';
import { type Shares, sharesOf } from './shares.ts';
import { SortedList } from './sorted-list.ts';
import {
  allIn,
  countsTowards,
  headSinceMs,
  isSame,
  isWaiting,
  limitsOfEach,
  nextOf,
  type Shape,
  shapeKeyOf,
  type Waiting,
} from './waiting.ts';

/**
 * When the ranking shows room but the head is refused for its groups, this many other members of the shape are tried.
 */
const triesMax = 64;

export const queueOf = defineView((snapshot) => new Queue(snapshot));

export class Queue implements View, DueLine {
  readonly #snapshot: Snapshot;
  readonly #fleet: Fleet;
  readonly #shares: Shares;
  readonly #waiting = new BriefMap<string, Waiting>();
  readonly #shapes = new BriefMap<string, Shape>();
  readonly #shapesByGroup = new ByGroup<Shape>();
  readonly #due: DueLines;
  #taken: Waiting | undefined;
  #policy: Pick<Policy, 'agingMs'> & LimitPolicy = defaultPolicy;
  #limitCounts: LimitCounts | undefined;
  /** By resource class, as of the position `#mostAt` in the change log. */
  readonly #most = new Map<string, number>();
  #mostAt = -1;
  /** Number of placed instances. */
  readonly #placedByPriority = new Map<number, number>();
  /** Keys worth another try after the last change. */
  #woken: string[] = [];
  #last: RecordChange | undefined;
  /** The last instance that was placed, until its claim arrives as a change. */
  #placed: { readonly id: string; readonly shape: Shape } | undefined;

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
    this.#fleet = fleetOf(snapshot); // these views see every change before this one
    vocabularyOf(snapshot);
    this.#shares = sharesOf(snapshot);
    this.#due = new DueLines(this.#shares, this.#policy.agingMs);
    for (const { key, value } of snapshot.list('instance')) {
      this.#countPlaced(value, 1);
      if (isWaiting(value)) this.#enter(key, value);
    }
    this.#woken = [];
  }

  get length(): number {
    return this.#waiting.size;
  }

  /** All waiting keys, unordered. */
  keys(): Iterable<string> {
    return this.#waiting.keys();
  }

  /** The queue for its consumer. */
  dueLine(policy: Pick<Policy, 'agingMs'> & LimitPolicy): DueLine {
    this.#policy = policy;
    this.#due.agingMs = policy.agingMs;
    for (const known of [...this.#waiting.values()]) {
      const instance = this.#snapshot.get('instance', known.key)?.value;
      if (!instance) continue;
      this.#leave(known, known.sinceMs);
      this.#enter(known.key, instance);
    }
    return this;
  }

  /** Why nothing of its shape fits anywhere, if that is known and still valid. */
  whyUnfit(key: string): string | undefined {
    const unfit = this.#waiting.get(key)?.line.shape.unfit;
    return unfit?.logEnd === this.#fleet.log.end ? unfit.message : undefined;
  }

  /** Whether it asks for more of a class than any host has free, which decides without any rule. */
  cannotFit(key: string, { amounts }: Request): boolean {
    const line = this.#waiting.get(key)?.line;
    if (!line || line.all.size + line.shape.lines.size > 2 || line.shape.gang !== undefined) return false;
    for (const resourceClass in amounts) if ((amounts[resourceClass] ?? 0) > this.#mostOf(resourceClass)) return true;
    return false;
  }

  /** The most of a class that any host can give to one claim. */
  #mostOf(resourceClass: string): number {
    const { log } = this.#fleet;
    if (this.#mostAt !== log.end) {
      this.#mostAt = log.end;
      this.#most.clear();
    }
    let most = this.#most.get(resourceClass);
    if (most === undefined) {
      most = 0;
      const column = this.#fleet.column(resourceClass);
      for (let slot = 0; column && slot < this.#fleet.length; slot++) most = Math.max(most, column.most(slot));
      this.#most.set(resourceClass, most);
    }
    return most;
  }

  /** Records that it fits nowhere; this holds for its whole shape when no host has the room, groups aside. */
  noteUnfit(key: string, request: Request, message: string): void {
    const shape = this.#waiting.get(key)?.line.shape;
    if (!shape || shape.gang !== undefined || request.byQuery) return;
    if (engineOf(this.#snapshot).fitCount(request) === 0) shape.unfit = { logEnd: this.#fleet.log.end, message };
  }

  /** Since when it is the head of its line; undefined when it is not. */
  headSinceMs(key: string): number | undefined {
    const waiting = this.#waiting.get(key);
    return waiting && waiting.line.all.first() === waiting ? headSinceMs(waiting.line) : undefined;
  }

  /** Whether any instance of a lower priority is on a host. */
  placedBelow(priority: number): boolean {
    for (const each of this.#placedByPriority.keys()) if (each < priority) return true;
    return false;
  }

  #countPlaced(instance: Instance | null, sign: 1 | -1): void {
    if (instance?.status.host === undefined) return;
    const priority = instance.spec.priority ?? 0;
    const count = (this.#placedByPriority.get(priority) ?? 0) + sign;
    if (count === 0) this.#placedByPriority.delete(priority);
    else this.#placedByPriority.set(priority, count);
  }

  /** How many count towards a limit now. Counting starts at the first query. */
  taken({ word }: Limit): number {
    this.#limitCounts ??= new LimitCounts(this.#snapshot);
    return this.#limitCounts.taken(word);
  }

  /** Whether no limit holds back the next one; for a gang, all its waiting members. */
  #isOpen(shape: Shape): boolean {
    if (shape.gang === undefined) return shape.limits.every((limit) => this.taken(limit) < limit.max);
    for (const { limit, count } of countAsked(limitsOfEach(shape)).values())
      if (this.taken(limit) + count > limit.max) return false;
    return true;
  }

  // Due keys.

  /** Number of due keys. */
  get size(): number {
    return this.#due.size;
  }

  add(key: string): void {
    const waiting = this.#waiting.get(key);
    if (waiting) this.#due.add(waiting);
  }

  take(): string | undefined {
    this.#tryNext();
    const waiting = this.#due.first();
    this.#taken = waiting;
    if (waiting) this.#due.delete(waiting);
    return waiting?.key;
  }

  /** The instance just taken could not be placed although there is room for its shape: another may fit. */
  #tryNext(): void {
    const taken = this.#taken;
    this.#taken = undefined;
    if (!taken || this.#waiting.get(taken.key) !== taken) return;
    const { shape } = taken.line;
    if (shape.triesLeft === 0 || shape.gang !== undefined) return;
    const next = nextOf(shape, taken);
    if (
      !next ||
      next.line.due.has(next) ||
      !this.#isOpen(shape) ||
      engineOf(this.#snapshot).fitCount(shape.request) === 0
    )
      return;
    shape.triesLeft -= 1;
    this.#due.add(next);
  }

  // Updates.

  /** The keys worth another try after `change`, which must be the last change. */
  wokenBy(change: RecordChange): Iterable<string> {
    return change === this.#last ? this.#woken : nothing;
  }

  apply(change: RecordChange): void {
    const { key, kind, before, after } = change;
    this.#last = change;
    if (this.#woken.length > 0) this.#woken = [];
    switch (kind) {
      case 'instance': {
        for (const word of this.#limitCounts?.apply(change) ?? []) this.#limitEased(word);
        const was = before?.kind === 'instance' ? before : null;
        const now = after?.kind === 'instance' ? after : null;
        this.#countPlaced(was, -1);
        this.#countPlaced(now, 1);
        this.#applyInstance(key, now);
        for (const word of this.#limitCounts?.apply(change) ?? []) this.#limitEased(word);
        const kept = was?.status.nomination?.host;
        if (kept !== undefined && kept !== now?.status.nomination?.host) this.#roomCame(kept); // for other instances
        return this.#neighbourMoved(was, now);
      }
      case 'allocation':
        for (const word of this.#limitCounts?.apply(change) ?? []) this.#limitEased(word);
        // An allocation was released or became smaller; a claim only takes room.
        if (before?.kind === 'allocation') this.#roomCame(before.host);
        else if (after?.kind === 'allocation') this.#claimed(after.consumer.id);
        return;
      case 'provider':
        if (after?.kind === 'provider' && !sameOffer(before, after)) this.#roomCame(after.host);
        return;
      case 'host':
        // The dedication of a host to a project is part of the project's requests.
        if (ownerOf(before) !== ownerOf(after)) this.#requestsChanged();
        if (after?.kind === 'host') this.#roomCame(after.metadata.name);
        return;
      case 'image':
      case 'size':
      case 'pool':
      case 'group':
        return this.#requestsChanged();
      default:
    }
  }

  #applyInstance(key: string, after: Instance | null): void {
    const known = this.#waiting.get(key);
    if (after && isWaiting(after)) {
      if (known && isSame(known, after)) return;
      if (known) this.#leave(known, known.sinceMs);
      this.#enter(key, after);
      return;
    }
    if (!known) {
      const gang = after ? gangKeyOf(after) : undefined;
      if (gang !== undefined && this.#shapes.has(`gang ${gang}`)) this.#wakeGang(gang); // a running one may have ended
      return;
    }
    const placed = after?.metadata.id === known.id ? after.status.scheduledAtMs : undefined;
    this.#leave(known, placed ?? after?.metadata.deletionRequestedAtMs ?? known.sinceMs);
    const { gang } = known.line.shape;
    if (gang !== undefined) return placed === undefined ? this.#wakeGang(gang) : undefined;
    if (placed === undefined) return;
    // The next of its shape is due once the claim is counted: the changes of a Plan arrive one by one.
    this.#placed = { id: known.id, shape: known.line.shape };
    if (this.#snapshot.allocationsOfConsumer(known.id).length > 0) this.#claimed(known.id);
  }

  #enter(key: string, instance: Instance): void {
    const { metadata, spec, status } = instance;
    const { request, limits, gang, task, ownShape } = this.#aloneOf(instance);
    const shapeKey = gang === undefined ? ownShape : `gang ${gang}`;
    let shape = this.#shapes.get(shapeKey);
    if (!shape) {
      shape = {
        key: shapeKey,
        request,
        limits: gang === undefined ? limits : noLimits,
        task,
        gang,
        lines: new Map(),
        rules: null,
        layout: 0,
        triesLeft: triesMax,
        unfit: null,
      };
      this.#shapes.set(shapeKey, shape);
      this.#shapesByGroup.add(shape);
    } else if (gang !== undefined) this.#askToo(shape, request);
    const priority = spec.priority ?? 0;
    const lineKey = `${priority} ${metadata.project}`;
    let line = shape.lines.get(lineKey);
    if (!line) {
      const { project } = metadata;
      const all = new SortedList<Waiting>(compareAges);
      const due = new SortedList<Waiting>(compareAges);
      line = { project, priority, shape, all, due, leftAtMs: 0, rank: null };
      shape.lines.set(lineKey, line);
    }
    const { id, createdAtMs, generation, labels } = metadata;
    const sinceMs = status.failedAtMs ?? createdAtMs;
    const kept = gang === undefined ? shape.key : ownShape; // all instances of the shape share one text
    const waiting: Waiting = { key, id, createdAtMs, sinceMs, generation, labels, limits, ownShape: kept, line };
    this.#waiting.set(key, waiting);
    line.all.add(waiting);
    if (shape.gang === undefined) this.#woken.push(key);
    else this.#wakeGang(shape.gang); // it may be complete now
  }

  /** The request of the instance on its own, without its gang. */
  #aloneOf(instance: Instance) {
    const request = requestOf(this.#snapshot, instance);
    const gang = gangKeyOf(instance);
    const task = gang === undefined ? taskOf(instance) : undefined;
    const limits = limitsOn(this.#snapshot, this.#policy, instance);
    return { request, limits, gang, task, ownShape: shapeKeyOf(request, { task, limits }) };
  }

  /** Adds the member's group terms to the gang's. They stay when the member leaves: an unnecessary try is cheap. */
  #askToo(gang: Shape, { groups }: Request): void {
    const more = groups.filter((term) => !gang.request.groups.some((known) => equalJson(known, term)));
    if (more.length === 0) return;
    this.#shapesByGroup.delete(gang);
    gang.request = { ...gang.request, groups: [...gang.request.groups, ...more] };
    this.#shapesByGroup.add(gang);
  }

  #leave(waiting: Waiting, atMs: number): void {
    const { line, key } = waiting;
    const { shape } = line;
    this.#due.delete(waiting);
    const wasHead = line.all.first() === waiting;
    line.all.delete(waiting);
    this.#waiting.delete(key);
    if (line.all.size === 0) {
      shape.lines.delete(`${line.priority} ${line.project}`);
      if (shape.lines.size === 0) {
        this.#shapes.delete(shape.key);
        this.#shapesByGroup.delete(shape);
      }
    } else if (wasHead) {
      line.leftAtMs = Math.max(line.leftAtMs, atMs);
      if (line.rank) this.#due.rank(line);
    }
  }

  /** The first of each shape that waits for such a neighbour to arrive or leave. */
  #neighbourMoved(before: Instance | null, after: Instance | null): void {
    for (const shape of this.#shapesByGroup.helpedBy(before, after)) this.#wake(shape);
  }

  /** Requests include sizes, images, pools and placement groups: instances whose request has changed are due. */
  #requestsChanged(): void {
    for (const { key } of [...this.#waiting.values()]) {
      const instance = this.#snapshot.get('instance', key)?.value;
      const known = this.#waiting.get(key);
      if (!instance || !known) continue;
      if (this.#aloneOf(instance).ownShape === known.ownShape) continue;
      this.#leave(known, known.sinceMs);
      this.#enter(key, instance);
    }
  }

  /** The first of the shape, or all members of a gang. */
  #wake(shape: Shape): void {
    if (shape.gang !== undefined) return this.#wakeGang(shape.gang);
    shape.triesLeft = triesMax;
    const first = this.#firstOf(shape);
    if (first) this.#woken.push(first.key);
  }

  /** All members: each reports that some are missing, and the oldest places the gang when it is complete. */
  #wakeGang(gang: string): void {
    for (const line of this.#shapes.get(`gang ${gang}`)?.lines.values() ?? [])
      for (const { key } of line.all) this.#woken.push(key);
  }

  /** The first of each shape under this limit: the first of these in order is placed. */
  #limitEased(word: string): void {
    for (const shape of this.#shapes.values()) {
      if (countsTowards(shape, word) && this.#isOpen(shape)) this.#wake(shape);
    }
  }

  /** The first of each shape that fits on the host now. */
  #roomCame(host: string): void {
    const slot = this.#fleet.slotOf(host);
    if (slot === undefined) return;
    for (const { key } of this.#fleet.nominations.on(host)) if (this.#waiting.has(key)) this.#woken.push(key);
    for (const shape of this.#shapes.values()) {
      // A shape that a limit holds back becomes due when the limit eases.
      if (this.#mayHelp(shape, host, slot) && this.#isOpen(shape)) this.#wake(shape);
    }
  }

  #mayHelp(shape: Shape, host: string, slot: number): boolean {
    if (shape.task !== undefined) return this.#taskHost(shape) === host;
    return shape.gang === undefined ? this.#fitsAt(shape, slot) : this.#anyFitsAt(shape, slot);
  }

  /** Whether a member of the gang fits there. */
  #anyFitsAt(shape: Shape, slot: number): boolean {
    for (const { key } of allIn(shape)) {
      const instance = this.#snapshot.get('instance', key)?.value;
      if (!instance) continue;
      const rules = prepareRules([...roomPlugins, ...hostPlugins], requestOf(this.#snapshot, instance), this.#fleet);
      if (rules.filters.every(({ filter }) => !filter(slot))) return true;
    }
    return false;
  }

  #taskHost({ task = '', request }: Shape): string | undefined {
    return this.#snapshot.get('task', keys.task(request.belonging.project, task))?.value.status.host;
  }

  #fitsAt(shape: Shape, slot: number): boolean {
    const { amounts } = shape.request;
    for (const resourceClass in amounts) {
      // The most frequent refusal is the cheapest to test.
      if ((amounts[resourceClass] ?? 0) > (this.#fleet.column(resourceClass)?.most(slot) ?? 0)) return false;
    }
    const { layout } = this.#fleet;
    if (!shape.rules || shape.layout !== layout) {
      shape.rules = prepareRules([...roomPlugins, ...hostPlugins], shape.request, this.#fleet);
      shape.layout = layout;
    }
    for (const { filter } of shape.rules.filters) if (filter(slot)) return false;
    return true;
  }

  #claimed(consumerId: string): void {
    if (this.#placed?.id !== consumerId) return;
    const { shape } = this.#placed;
    this.#placed = undefined;
    const first = this.#firstOf(shape);
    if (first && this.#isOpen(shape) && engineOf(this.#snapshot).fitCount(shape.request) > 0)
      this.#woken.push(first.key);
  }

  #firstOf(shape: Shape): Waiting | undefined {
    let best: { readonly waiting: Waiting; readonly rank: Rank } | undefined;
    for (const line of shape.lines.values()) {
      const waiting = line.all.first();
      if (!waiting) continue;
      const rank = { level: this.#due.levelOf(line), createdAtMs: waiting.createdAtMs, id: waiting.id };
      if (
        !best ||
        compareAcross(rank, this.#shares.of(line.project), best.rank, this.#shares.of(best.waiting.line.project)) < 0
      )
        best = { waiting, rank };
    }
    return best?.waiting;
  }

  // For users.

  /** All waiting instances in the order in which they would be placed. */
  inOrder(nowMs: number): Waiting[] {
    const { agingMs } = this.#policy;
    return placingOrder(this.#shapes.values(), { shares: this.#shares, agingMs, nowMs });
  }
}

const nothing: readonly string[] = [];
const noLimits: readonly Limit[] = [];

function ownerOf(record: AnyRecord | null): string | undefined {
  return record?.kind === 'host' ? record.spec.dedicatedTo : undefined;
}

/** The first limit that `count` more placements would exceed. */
export function limitReached(
  snapshot: Snapshot,
  limits: readonly Limit[],
  count = 1,
): { readonly reason: Limit['reason']; readonly message: string } | undefined {
  const queue = queueOf(snapshot);
  const limit = limits.find((each) => queue.taken(each) + count > each.max);
  return limit && { reason: limit.reason, message: describeLimit(limit, queue.taken(limit), count) };
}

function sameOffer(before: AnyRecord | null, after: AnyRecord): boolean {
  return (
    before?.kind === 'provider' &&
    after.kind === 'provider' &&
    equalJson(before.inventories, after.inventories) &&
    equalJson(before.traits, after.traits) &&
    equalJson(before.aggregates, after.aggregates)
  );
}
