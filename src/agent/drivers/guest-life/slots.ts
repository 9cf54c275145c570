// What the driver holds in memory of its guests, one slot each: operations on one guest follow one another, and so do the
// writes of its record. Knows nothing of what the operations do.

import { describeError, type Logger } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { ConsoleFollower } from './ways-in/console-log.ts';
import { type GuestRecord, writeGuestRecord } from './guest-record.ts';
import type { Run } from './hypervisor.ts';

/** Without a record there is no guest (any more). */
export interface Slot {
  readonly instanceId: string;
  record: GuestRecord | undefined;
  /** Operations on one guest follow one another; this is the end of the line. */
  line: Promise<void>;
  /** Writes of the record follow one another too. */
  writing: Promise<void>;
  run: Run | undefined;
  /** Resolves when the end of `run` is in the record. */
  settled: Promise<void>;
  console: ConsoleFollower | undefined;
  /** Abort the creates that are under way or in line. */
  readonly creating: Set<AbortController>;
  /** Abort the grace of the stops that are under way or in line. */
  readonly stopping: Set<AbortController>;
  progress: string | undefined;
}

export interface Slots {
  /** True once nothing more is to be done to any guest. */
  readonly closed: boolean;
  /** Makes one where there is none. */
  of(instanceId: string): Slot;
  get(instanceId: string): Slot | undefined;
  all(): readonly Slot[];
  /** Does `act` when all that was to be done to this guest before is done. */
  inLine<Result>(slot: Slot, act: () => Promise<Result>): Promise<Result>;
  /** Changes what is known of a guest, for all to see; resolves when it is on disk. */
  save(slot: Slot, change: Partial<GuestRecord>): Promise<void>;
  /** For changes that nobody waits for, and that the next agent can find out again. */
  saveLater(slot: Slot, change: Partial<GuestRecord>): void;
  setProgress(slot: Slot, progress: string | undefined): void;
  notify(instanceId: string): void;
  watch(listener: (instanceId: string) => void, signal: AbortSignal): void;
  /** Lets nothing more begin. */
  close(): void;
  /** Resolves when all that was under way has ended. */
  quiet(): Promise<void>;
}

export function createSlots({
  directoryOf,
  log,
}: {
  readonly directoryOf: (instanceId: string) => Promise<string>;
  readonly log: Logger;
}): Slots {
  const slots = new Map<string, Slot>();
  const listeners = new Set<(instanceId: string) => void>();
  let closed = false;

  const notify = (instanceId: string): void => {
    for (const listener of listeners) listener(instanceId);
  };

  const save = async (slot: Slot, change: Partial<GuestRecord>): Promise<void> => {
    if (slot.record === undefined) return;
    slot.record = { ...slot.record, ...change };
    notify(slot.instanceId);
    const write = slot.writing.then(async () => {
      if (slot.record !== undefined) await writeGuestRecord(await directoryOf(slot.instanceId), slot.record);
    });
    slot.writing = write.catch(() => {}); // whoever awaits `write` is told
    await write;
  };

  return {
    get closed() {
      return closed;
    },
    of(instanceId) {
      let slot = slots.get(instanceId);
      if (slot === undefined) {
        slot = emptySlot(instanceId);
        slots.set(instanceId, slot);
      }
      return slot;
    },
    get: (instanceId) => slots.get(instanceId),
    all: () => [...slots.values()],
    inLine(slot, act) {
      const result = slot.line.then(() => {
        if (closed)
          throw new DriverError('Aborted', `nothing more is done to ${slot.instanceId}: the driver is closed`);
        return act();
      });
      const line = result.then(
        () => {},
        () => {}, // whoever asked is told; whoever comes next does not care
      );
      slot.line = line;
      void line.then(() => {
        if (slot.record === undefined && slot.line === line) slots.delete(slot.instanceId);
      });
      return result;
    },
    save,
    saveLater(slot, change) {
      save(slot, change).catch((error: unknown) =>
        log.warn('cannot write the record of a guest', { instance: slot.instanceId, error: describeError(error) }),
      );
    },
    setProgress(slot, progress) {
      if (slot.progress === progress) return;
      slot.progress = progress;
      notify(slot.instanceId);
    },
    notify,
    watch(listener, signal) {
      if (signal.aborted) return;
      const each = (instanceId: string): void => listener(instanceId); // its own, should one function watch twice
      listeners.add(each);
      signal.addEventListener('abort', () => listeners.delete(each), { once: true });
    },
    close() {
      closed = true;
      listeners.clear();
    },
    async quiet() {
      await Promise.all([...slots.values()].flatMap((slot) => [slot.line, slot.writing]));
    },
  };
}

export const idPattern = /^[a-z]+_[0-9a-z]{26}$/;

/** Ids become names of folders. */
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
