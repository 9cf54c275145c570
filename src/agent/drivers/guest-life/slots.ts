// The driver's memory of its guests, one slot each. Operations on one guest run one after another, and so do the writes of its record. Knows
// nothing of what the operations do.

import { describeError, type Logger } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { ConsoleFollower } from './ways-in/console-log.ts';
import { type GuestRecord, writeGuestRecord } from './guest-record.ts';
import type { Run } from './hypervisor.ts';

/** Without a record, there is no guest. */
export interface Slot {
  readonly instanceId: string;
  record: GuestRecord | undefined;
  /** The last operation in line: operations on one guest run one after another. */
  line: Promise<void>;
  /** The last write of the record in line. */
  writing: Promise<void>;
  run: Run | undefined;
  /** Resolves when the end of `run` is in the record. */
  settled: Promise<void>;
  console: ConsoleFollower | undefined;
  /** Abort the creates that run or wait in line. */
  readonly creating: Set<AbortController>;
  /** Abort the grace periods of the stops that run or wait in line. */
  readonly stopping: Set<AbortController>;
  progress: string | undefined;
}

export class Slots {
  readonly #directoryOf: (instanceId: string) => Promise<string>;
  readonly #log: Logger;
  readonly #slots = new Map<string, Slot>();
  readonly #listeners = new Set<(instanceId: string) => void>();
  #closed = false;

  constructor(options: { readonly directoryOf: (instanceId: string) => Promise<string>; readonly log: Logger }) {
    this.#directoryOf = options.directoryOf;
    this.#log = options.log;
  }

  /** True once no operation may begin any more. */
  get closed(): boolean {
    return this.#closed;
  }

  /** The slot of the instance, which is created if there is none. */
  of(instanceId: string): Slot {
    let slot = this.#slots.get(instanceId);
    if (slot === undefined) {
      slot = emptySlot(instanceId);
      this.#slots.set(instanceId, slot);
    }
    return slot;
  }

  get(instanceId: string): Slot | undefined {
    return this.#slots.get(instanceId);
  }

  all(): readonly Slot[] {
    return [...this.#slots.values()];
  }

  /** Runs `act` after all earlier operations on this guest. */
  inLine<Result>(slot: Slot, act: () => Promise<Result>): Promise<Result> {
    const result = slot.line.then(() => {
      if (this.#closed)
        throw new DriverError('Aborted', `nothing more is done to ${slot.instanceId}: the driver is closed`);
      return act();
    });
    const line = result.then(
      () => {},
      () => {}, // the caller handles the error; the next operation does not depend on it
    );
    slot.line = line;
    void line.then(() => {
      if (slot.record === undefined && slot.line === line) this.#slots.delete(slot.instanceId);
    });
    return result;
  }

  /** Changes the record of a guest, visible at once; resolves when the change is on disk. */
  async save(slot: Slot, change: Partial<GuestRecord>): Promise<void> {
    if (slot.record === undefined) return;
    slot.record = { ...slot.record, ...change };
    this.notify(slot.instanceId);
    const write = slot.writing.then(async () => {
      if (slot.record !== undefined) await writeGuestRecord(await this.#directoryOf(slot.instanceId), slot.record);
    });
    slot.writing = write.catch(() => {}); // the caller that awaits `write` handles the error
    await write;
  }

  /** Saves a change that no operation waits for, and that the next agent can find out again. */
  saveLater(slot: Slot, change: Partial<GuestRecord>): void {
    this.save(slot, change).catch((error: unknown) =>
      this.#log.warn('cannot write the record of a guest', { instance: slot.instanceId, error: describeError(error) }),
    );
  }

  setProgress(slot: Slot, progress: string | undefined): void {
    if (slot.progress === progress) return;
    slot.progress = progress;
    this.notify(slot.instanceId);
  }

  notify(instanceId: string): void {
    for (const listener of this.#listeners) listener(instanceId);
  }

  watch(listener: (instanceId: string) => void, signal: AbortSignal): void {
    if (signal.aborted) return;
    const each = (instanceId: string): void => listener(instanceId); // a new function, in case one listener watches twice
    this.#listeners.add(each);
    signal.addEventListener('abort', () => this.#listeners.delete(each), { once: true });
  }

  /** No operation begins any more. */
  close(): void {
    this.#closed = true;
    this.#listeners.clear();
  }

  /** Resolves when all operations and writes have ended. */
  async quiet(): Promise<void> {
    await Promise.all(this.all().flatMap((slot) => [slot.line, slot.writing]));
  }
}

export const idPattern = /^[a-z]+_[0-9a-z]{26}$/;

/** Throws for anything else: ids become names of folders. */
export function checkId(instanceId: string): void {
  if (!idPattern.test(instanceId)) throw new DriverError('NoSuchGuest', `"${instanceId}" is not an instance id`);
}

export function abortAll(controllers: Iterable<AbortController>): void {
  for (const controller of controllers) controller.abort();
}

function emptySlot(instanceId: string): Slot {
  return {
    instanceId,
    record: undefined,
    line: Promise.resolve(),
    writing: Promise.resolve(),
    run: undefined,
    settled: Promise.resolve(),
    console: undefined,
    creating: new Set(),
    stopping: new Set(),
    progress: undefined,
  };
}
