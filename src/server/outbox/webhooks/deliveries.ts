// The deliveries of one webhook as a state: what is to be sent next, and what each outcome changes. Events of one subject are in order: the
// next waits until the one before is delivered or parked. It sends nothing and knows no clock.

import type { CloudEvent } from '../../../api/news/cloud-event.ts';
import type { WebhookDelivery } from '../../../api/news/webhook-delivery.ts';
import type { PendingDelivery, WebhookProgress } from '../../../core/state/records.ts';
import type { Posted } from './post.ts';

/** Requests to one receiver at a time. */
const inFlightMax = 2;
/** Deliveries that wait for another attempt or behind one; when there are more, no further events are read. */
export const pendingMax = 200;
const parkedMax = 50;
const deliveredMax = 20;

export interface Due {
  readonly event: CloudEvent;
  /** The attempts before this one. */
  readonly attempts: number;
}

type Progress = Pick<WebhookProgress, 'pending' | 'delivered' | 'revision' | 'readAtMs' | 'asked' | 'failingSinceMs'>;

export interface Backlog {
  readonly waiting: number;
  readonly parked: number;
  /** When the oldest of those that wait happened. */
  readonly oldestAtMs?: number;
}

export class Deliveries {
  #pending: PendingDelivery[];
  #delivered: readonly WebhookDelivery[];
  /** In order of revision. */
  readonly #queue: CloudEvent[] = [];
  /** By id of the event. */
  readonly #inFlight = new Map<string, Due>();
  #readUpTo: number;
  /** No event up to `#readUpTo` is later, and each after it is. */
  #readAtMs: number;
  #asked: number;
  #failingSinceMs: number | undefined;
  /** In a row, since this process began to send. */
  failures = 0;
  /** Something is not written down yet. */
  dirty = false;

  constructor(progress: Progress) {
    this.#pending = [...progress.pending];
    this.#delivered = progress.delivered;
    this.#readUpTo = progress.revision;
    this.#readAtMs = progress.readAtMs ?? 0;
    this.#asked = progress.asked;
    this.#failingSinceMs = progress.failingSinceMs;
  }

  get readUpTo(): number {
    return this.#readUpTo;
  }

  /** Every event that is later than this came after what was read. */
  get readAtMs(): number {
    return this.#readAtMs;
  }

  get queued(): number {
    return this.#queue.length;
  }

  /** What was read and is not delivered yet. */
  backlog(): Backlog {
    const waiting = this.#pending.filter(({ nextAtMs }) => nextAtMs !== undefined).map(({ event }) => event);
    const ids = new Set(waiting.map(({ id }) => id));
    for (const { event } of this.#inFlight.values()) if (!ids.has(event.id)) waiting.push(event);
    const first = this.#queue[0];
    const times = (first === undefined ? waiting : [...waiting, first]).map(({ time }) => Date.parse(time));
    return {
      waiting: waiting.length + this.#queue.length,
      parked: this.#pending.filter(({ nextAtMs }) => nextAtMs === undefined).length,
      ...(times.length === 0 ? {} : { oldestAtMs: Math.min(...times) }),
    };
  }

  get asked(): number {
    return this.#asked;
  }

  get failingSinceMs(): number | undefined {
    return this.#failingSinceMs;
  }

  /** Every event up to `revision` was looked at, and all that come later are later than `atMs`; these are for this webhook. */
  read(events: readonly CloudEvent[], revision: number, atMs = this.#readAtMs): void {
    this.#queue.push(...events);
    if (revision > this.#readUpTo) this.#readUpTo = revision;
    if (atMs > this.#readAtMs) this.#readAtMs = atMs;
  }

  /** Events are missing before those that are read next. Written down, for they cannot be found to be missing a second time. */
  gap(event: CloudEvent): void {
    this.#pending.push({ event, attempts: 0, nextAtMs: 0 });
    this.dirty = true;
  }

  /** Another delivery, at once; `event` undefined: it is among the pending ones. */
  again(number: number, id: string, event: CloudEvent | undefined): void {
    this.#asked = number;
    this.dirty = true;
    const known = this.#pending.find((each) => each.event.id === id);
    const wanted = event ?? known?.event;
    if (wanted === undefined || this.#inFlight.has(id)) return;
    this.#pending = this.#pending.filter((each) => each !== known);
    this.#pending.unshift({ event: wanted, attempts: 0, nextAtMs: 0 });
  }

  /** What to send now; undefined: nothing. The caller must tell the outcome. */
  take(nowMs: number): Due | undefined {
    if (this.#inFlight.size >= inFlightMax) return undefined;
    const due = this.#takePending(nowMs) ?? this.#takeQueued();
    if (due) this.#inFlight.set(due.event.id, due);
    return due;
  }

  /** When a pending delivery is due next; undefined: none is. */
  nextAtMs(nowMs: number): number | undefined {
    const times = [...this.#eligible()].map((each) => dueAtMs(each, nowMs));
    return times.length === 0 ? undefined : Math.min(...times);
  }

  delivered({ event }: Due, { status }: Posted, nowMs: number): void {
    const attempts = (this.#inFlight.get(event.id)?.attempts ?? 0) + 1;
    this.#settle(event.id);
    this.#failingSinceMs = undefined;
    this.failures = 0;
    this.#delivered = [
      ...this.#delivered,
      {
        ...{ event: event.id, type: event.type, subject: event.subject, state: 'Delivered' as const },
        ...{ attempts, lastAtMs: nowMs },
        ...(status === undefined ? {} : { status }),
      },
    ].slice(-deliveredMax);
  }

  /** `delayMs` undefined: it was tried for the last time. */
  failed({ event, attempts }: Due, { status, error = '' }: Posted, { nowMs, delayMs }: Outcome): void {
    const at = this.#pending.findIndex((each) => each.event.id === event.id);
    this.#inFlight.delete(event.id);
    this.dirty = true;
    this.#failingSinceMs ??= nowMs;
    this.failures += 1;
    const next: PendingDelivery = {
      event,
      attempts: attempts + 1,
      ...(delayMs === undefined ? {} : { nextAtMs: nowMs + delayMs }),
      lastAtMs: nowMs,
      ...(status === undefined ? {} : { status }),
      error: error.slice(0, 256),
    };
    if (at < 0) insert(this.#pending, next);
    else this.#pending[at] = next;
    this.#forgetParked();
  }

  /** Nothing came of it: the sender stops. */
  giveBack({ event, attempts }: Due): void {
    this.#inFlight.delete(event.id);
    if (this.#pending.some((each) => each.event.id === event.id)) return;
    insert(this.#pending, { event, attempts, nextAtMs: 0 });
  }

  /** As it is written down: what is in flight is delivered again after a crash. */
  progress(): Progress {
    const pending = [...this.#pending];
    for (const { event, attempts } of this.#inFlight.values())
      if (!pending.some((each) => each.event.id === event.id)) insert(pending, { event, attempts, nextAtMs: 0 });
    const first = this.#queue[0];
    return {
      pending,
      delivered: this.#delivered,
      revision: first ? Number(first.sequence) - 1 : this.#readUpTo,
      readAtMs: first ? Math.min(this.#readAtMs, Date.parse(first.time)) : this.#readAtMs,
      asked: this.#asked,
      ...(this.#failingSinceMs === undefined ? {} : { failingSinceMs: this.#failingSinceMs }),
    };
  }

  #takePending(nowMs: number): Due | undefined {
    for (const each of this.#eligible())
      if (dueAtMs(each, nowMs) <= nowMs) return { event: each.event, attempts: each.attempts };
    return undefined;
  }

  /** The first of each subject that waits, unless one of it is under way. */
  *#eligible(): Iterable<PendingDelivery> {
    const before = new Set([...this.#inFlight.values()].map(({ event }) => event.partitionkey));
    for (const each of this.#pending) {
      if (each.nextAtMs === undefined || before.has(each.event.partitionkey)) continue;
      before.add(each.event.partitionkey);
      yield each;
    }
  }

  #takeQueued(): Due | undefined {
    for (let event = this.#queue[0]; event !== undefined; event = this.#queue[0]) {
      const { partitionkey } = event;
      const isBehind =
        [...this.#inFlight.values()].some((each) => each.event.partitionkey === partitionkey) ||
        this.#pending.some((each) => each.nextAtMs !== undefined && each.event.partitionkey === partitionkey);
      if (!isBehind) {
        this.#queue.shift();
        return { event, attempts: 0 };
      }
      if (this.#pending.length >= pendingMax) return undefined;
      this.#queue.shift();
      this.#pending.push({ event, attempts: 0, nextAtMs: 0 });
      this.dirty = true;
    }
    return undefined;
  }

  #settle(id: string): void {
    this.#inFlight.delete(id);
    this.#pending = this.#pending.filter((each) => each.event.id !== id);
    this.dirty = true;
  }

  #forgetParked(): void {
    const parked = this.#pending.filter(({ nextAtMs }) => nextAtMs === undefined);
    const gone = new Set(parked.slice(0, Math.max(0, parked.length - parkedMax)));
    if (gone.size > 0) this.#pending = this.#pending.filter((each) => !gone.has(each));
  }
}

/** At once when its last attempt is in the future: the clock was set back, and would have it wait for that long, too. */
function dueAtMs({ nextAtMs = 0, lastAtMs = 0 }: PendingDelivery, nowMs: number): number {
  return lastAtMs > nowMs ? nowMs : nextAtMs;
}

/** In the order of revisions. */
function insert(pending: PendingDelivery[], delivery: PendingDelivery): void {
  const revision = Number(delivery.event.sequence);
  const at = pending.findIndex((each) => Number(each.event.sequence) > revision);
  pending.splice(at < 0 ? pending.length : at, 0, delivery);
}

interface Outcome {
  readonly nowMs: number;
  readonly delayMs: number | undefined;
}
