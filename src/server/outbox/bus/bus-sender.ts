// Sends all events to one event bus, in order of revision. The position is written down after the bus has acknowledged, never before:
// after a crash some events are sent again, with the same ids, and none is left out.

import { backoffMs } from '../../../base/backoff.ts';
import { sleep, type Timer } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { type CloudEvent, cloudEventOf } from '../../../api/news/cloud-event.ts';
import { gapEvent } from '../../../api/news/gap-event.ts';
import { advanceBus } from '../../../core/operations/news/bus-progress.ts';
import { epochOf } from '../../../core/state/cluster-state.ts';
import { keys } from '../../../core/state/keys.ts';
import { type Decider, decideAndCommit } from '../../decide.ts';
import type { BusLag, PartReport } from '../../outside.ts';
import type { EventFeed } from '../event-feed.ts';
import { type Bus, busError, type OpenBus } from './bus.ts';

export interface BusSenderParts {
  readonly name: string;
  readonly open: OpenBus;
  readonly decider: Decider;
  readonly feed: EventFeed;
  readonly log: Logger;
}

interface Batch {
  readonly events: readonly CloudEvent[];
  /** Where it is when they are acknowledged. */
  readonly until: number;
  /** There is more to read. */
  readonly more: boolean;
}

/** The position is written at most this often. */
const writeMs = 1_000;
/** How soon it looks again when not all could be read. */
const behindMs = 100;
const batchMax = 256;
const retryDelay = { delayMsMin: 500, delayMsMax: 30_000 };

export class BusSender {
  readonly #parts: BusSenderParts;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  /** The bus has acknowledged every event up to here. */
  #position: number;
  /** Whether events after the position were deleted before this began is known, and told. */
  #isWhole = false;
  /** The revision of the first event after the position; when it is gone, it was deleted unsent. */
  #firstUnsent: number | undefined;
  #isWoken = false;
  #wakeUp: (() => void) | undefined;
  #trouble: string | undefined = 'not connected yet';
  #failures = 0;
  #isDirty = false;
  #writeTimer: Timer | undefined;
  #writing: Promise<void> | undefined;

  constructor(parts: BusSenderParts) {
    this.#parts = parts;
    const { cache } = parts.decider;
    const known = cache.committed('busProgress', keys.busProgress(parts.name))?.value.revision;
    this.#position = known ?? cache.revision;
    if (known === undefined) {
      this.#isDirty = true;
      this.#isWhole = true;
      this.#writing = this.#write(); // after a crash before the first event, too, it begins here
    }
    this.#running = this.#run();
  }

  /** There may be events to send. */
  wake(): void {
    this.#noteFirst();
    this.#isWoken = true;
    this.#wakeUp?.();
  }

  report(): PartReport {
    const { events } = this.lag();
    const wait = `${events} events wait`;
    const message = this.#trouble === undefined ? `events are sent; ${wait}` : `${this.#trouble}; ${wait}`;
    return { name: `event bus ${this.#parts.name}`, ok: this.#trouble === undefined, message };
  }

  lag(): BusLag {
    const { feed, name, decider } = this.#parts;
    const events = feed.countAfter(this.#position);
    const oldest = events === 0 ? undefined : feed.after(this.#position, 1).events[0];
    const ageMs = oldest === undefined ? 0 : Math.max(0, decider.clock.nowMs() - oldest.metadata.createdAtMs);
    return { bus: name, events, ageMs };
  }

  /** Resolves when nothing is under way and the position is written down. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wakeUp?.();
    await this.#running;
    this.#writeTimer?.cancel();
    await this.#writing;
    await this.#write();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const { clock, prng } = this.#parts.decider;
    while (!signal.aborted) {
      await this.#connected().catch((error: unknown) => this.#failed(error));
      if (!signal.aborted) await sleep(clock, backoffMs(this.#failures - 1, retryDelay, prng), signal);
    }
  }

  /** Until the bus fails, or this is stopped. */
  async #connected(): Promise<void> {
    const bus = await this.#parts.open();
    const close = (): void => void bus.close().catch(() => undefined); // the answer of a bus that is left does not matter
    this.#stopping.signal.addEventListener('abort', close, { once: true });
    try {
      if (this.#stopping.signal.aborted) return;
      await this.#resume(bus);
      this.#recovered();
      await this.#pump(bus);
    } finally {
      this.#stopping.signal.removeEventListener('abort', close);
      await bus.close().catch(() => undefined); // the same
    }
  }

  /** What the bus has needs not be sent again, however long ago it was sent. */
  async #resume(bus: Bus): Promise<void> {
    const last = await bus.last(`urn:berth:${this.#fleet()}`);
    if (last !== undefined && last > this.#position) this.#acknowledged(last);
  }

  async #pump(bus: Bus): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#isWoken = false;
      const { events, until, more } = this.#next();
      if (events.length > 0) {
        await bus.send(events);
        this.#failures = 0;
        this.#isWhole = true;
        this.#acknowledged(until);
      } else {
        this.#isWhole = true;
        this.#position = Math.max(this.#position, until);
        if (more) await sleep(this.#parts.decider.clock, behindMs, signal);
        else await this.#woken();
      }
    }
  }

  #next(): Batch {
    const { feed, decider } = this.#parts;
    const after = this.#position;
    const fleet = this.#fleet();
    const { events, more } = feed.after(after, batchMax);
    const deletedUntil = this.#deletedUntil(events[0]?.metadata.revision);
    if (deletedUntil > after) {
      const gap = gapEvent({ after, until: deletedUntil }, { fleet, nowMs: decider.clock.nowMs() });
      return { events: [gap], until: deletedUntil, more: true };
    }
    const last = events.at(-1)?.metadata.revision ?? after;
    return {
      events: events.map((event) => cloudEventOf(event, fleet)),
      until: more ? last : Math.max(last, decider.cache.revision),
      more,
    };
  }

  /** `first`: of the events that are left; 0: none is known to be deleted. */
  #deletedUntil(first: number | undefined): number {
    const { feed, decider } = this.#parts;
    const isLost = this.#firstUnsent !== undefined && this.#firstUnsent !== first;
    // The oldest events are deleted first: while one up to the position is kept, none after it is gone.
    const mayBeLost = !this.#isWhole && (feed.oldestKept() ?? Number.POSITIVE_INFINITY) > this.#position;
    if (!isLost && !mayBeLost) return 0;
    return first === undefined ? decider.cache.revision : first - 1;
  }

  #noteFirst(): void {
    this.#firstUnsent ??= this.#parts.feed.after(this.#position, 1).events[0]?.metadata.revision;
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isWoken || this.#stopping.signal.aborted) return resolve();
      this.#wakeUp = resolve;
    });
  }

  #acknowledged(revision: number): void {
    this.#position = Math.max(this.#position, revision);
    this.#firstUnsent = undefined;
    this.#noteFirst();
    this.#isDirty = true;
    this.#writeSoon();
  }

  #recovered(): void {
    if (this.#failures > 0) this.#parts.log.info('events are sent to the event bus again', { bus: this.#parts.name });
    this.#trouble = undefined;
  }

  #failed(error: unknown): void {
    if (this.#stopping.signal.aborted) return;
    const why = describeError(busError(error));
    if (this.#failures === 0)
      this.#parts.log.warn('an event bus takes no events; it is tried again', { bus: this.#parts.name, why });
    this.#failures += 1;
    this.#trouble = `it takes no events: ${why}`;
  }

  #fleet(): string {
    return epochOf(this.#parts.decider.cache) ?? '';
  }

  #writeSoon(): void {
    if (this.#writeTimer !== undefined || this.#stopping.signal.aborted) return;
    const write = (): void => {
      this.#writeTimer = undefined;
      this.#writing = this.#write();
    };
    this.#writeTimer = this.#parts.decider.clock.setTimer(writeMs, write, { background: true });
  }

  async #write(): Promise<void> {
    if (!this.#isDirty) return;
    this.#isDirty = false;
    const { decider, name, log } = this.#parts;
    const progress = { kind: 'busProgress' as const, name, revision: this.#position };
    try {
      await decideAndCommit(decider, (snapshot) => advanceBus(snapshot, progress));
    } catch (error) {
      this.#isDirty = true;
      log.warn('the position of an event bus cannot be written', { bus: name, why: describeError(error) });
      this.#writeSoon();
    }
  }
}
