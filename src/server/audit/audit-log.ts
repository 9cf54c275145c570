// The audit log of one server. What happens in one turn is written together, and one fdatasync serves all lines that wait. While it cannot
// be written, what must be logged is refused (`assertWritable`); it recovers by itself.
//
//        a line cannot be written                  what was kept is written
//   ok ───────────────────────────▶ broken ───────────────────────────────────▶ ok
//    └─ the disk is full, the reserve is used ─▶ low (lines are written) ─ there is room for the reserve again ─▶ ok

import { ApiError } from '../../api/errors.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { AuditChain, type AuditChainOptions, type AuditHead, ownText } from './audit-chain.ts';
import { type AuditEnd, type AuditEntry, endText, entryText } from './audit-entry.ts';
import { AuditReserve } from './audit-reserve.ts';

export interface AuditLogOptions extends AuditChainOptions {
  readonly reserveBytes: number;
  /** Calls once the callbacks that are ready now have run, so that their lines are written together. */
  readonly afterCallbacks: (run: () => void) => void;
}

export interface AppendOptions {
  /** Wait for the disk. */
  readonly durable?: boolean;
  /** What it tells has not happened yet, and does not happen without the line: a line that cannot be written is dropped. */
  readonly first?: boolean;
}

/** Lines that are written together. */
interface Item extends AppendOptions {
  readonly texts: readonly string[];
  /** Of the first line; those of the others follow. */
  readonly note: number | undefined;
  /** Of the first line; 0: not written yet. */
  seq: number;
  readonly resolve: (seq: number) => void;
  readonly reject: (error: ApiError) => void;
}

/**
 * A line whose note is durable in the store does not wait for the disk: a crash loses nothing (missing-lines.ts). Each fdatasync of the file
 * delays those of the store on the same disk.
 */
const syncDelayMs = 100;
const recoverDelayMs = 1_000;
const expireEveryMs = 3_600_000;

export class AuditLog {
  readonly server: string;
  readonly directory: string;
  readonly #chain: AuditChain;
  readonly #reserve: AuditReserve;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #afterCallbacks: (run: () => void) => void;
  #queue: Item[] = [];
  #unsynced: Item[] = [];
  /** What has happened and could not be written. */
  #kept: Item[] = [];
  /** Lines that were dropped meanwhile. */
  #dropped = 0;
  #trouble: ApiError | undefined;
  #broken = false;
  #closed = false;
  #scheduled = false;
  #syncing: Promise<void> | undefined;
  #syncTimer: Timer | undefined;
  #recoverTimer: Timer | undefined;
  #expireTimer: Timer | undefined;
  /** Called when the lines of `count` notes are durable. */
  onDurable: (firstNote: number, count: number) => void = () => {};

  /** Throws when the folder cannot be read or written: a server does not start without its audit log. */
  constructor(options: AuditLogOptions) {
    this.server = options.server;
    this.directory = options.directory;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#afterCallbacks = options.afterCallbacks;
    this.#chain = new AuditChain(options);
    this.#reserve = new AuditReserve(options.directory, options.reserveBytes);
    try {
      this.#reserve.keep();
    } catch (error) {
      this.#fail(whenFull(error));
    }
    this.#expire();
  }

  /** Why changes are refused now; undefined: they are not. */
  get trouble(): ApiError | undefined {
    return this.#trouble;
  }

  /** Throws `AuditUnavailable`. */
  assertWritable(): void {
    if (this.#trouble) throw this.#trouble;
  }

  /** The newest line that is durable. */
  get head(): AuditHead {
    const { seq, hash } = this.#chain.durable;
    return { seq, hash };
  }

  /** The newest line that was written. */
  get newest(): AuditHead {
    return this.#chain.newest;
  }

  /** Resolves with its `seq` when the line is in the file; with `durable`, when it is on the disk. Rejects with `AuditUnavailable`. */
  append(entry: AuditEntry | string, end: AuditEnd, options: AppendOptions = {}): Promise<number> {
    const text = `${typeof entry === 'string' ? entry : entryText(entry)},${endText(end)}`;
    return new Promise((resolve, reject) => {
      const item: Item = { ...options, texts: [text], note: end.note, seq: 0, resolve, reject };
      if (this.#broken || this.#closed) return this.#refuse(item);
      this.#queue.push(item);
      this.#flushLater();
    });
  }

  /** Writes the lines of one commit, with notes from `firstNote` on. False: they cannot be written now, and come later. */
  appendNow(texts: readonly string[], firstNote: number): boolean {
    const item: Item = { texts, note: firstNote, seq: 0, resolve: ignore, reject: ignore };
    if (this.#broken || this.#closed) {
      this.#keep([item]);
      return false;
    }
    this.#queue.push(item);
    this.#flush();
    return item.seq > 0;
  }

  /** Resolves when all lines so far are durable, or cannot be. */
  async settled(): Promise<void> {
    this.#flush();
    while (this.#syncing || (!this.#broken && this.#unsynced.length > 0)) await this.#sync();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    await this.settled();
    this.#closed = true;
    for (const timer of [this.#syncTimer, this.#recoverTimer, this.#expireTimer]) timer?.cancel();
    this.#chain.close();
  }

  #flushLater(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#afterCallbacks(() => this.#flush());
  }

  #flush(): void {
    this.#scheduled = false;
    if (this.#queue.length === 0 || this.#closed) return;
    const items = this.#queue.splice(0);
    if (this.#broken) return items.forEach((item) => this.#refuse(item));
    try {
      this.#write(textsOf(items));
    } catch (error) {
      return this.#break(error, items);
    }
    this.#number(items);
    for (const { durable, resolve, seq } of items) if (!durable) resolve(seq);
    this.#unsynced.push(...items);
    if (items.some(({ durable }) => durable)) void this.#sync();
    else this.#syncTimer ??= this.#clock.setTimer(syncDelayMs, () => void this.#sync(), { background: true });
  }

  /** They have just been written. */
  #number(items: readonly Item[]): void {
    let seq = this.#chain.newest.seq + 1;
    for (const item of items.toReversed()) item.seq = seq -= item.texts.length;
  }

  #write(texts: readonly string[]): void {
    try {
      this.#chain.write(texts);
    } catch (error) {
      if (!isFull(error) || !this.#reserve.release()) throw error;
      this.#chain.write(texts);
      this.#fail(whenFull(error));
    }
  }

  /** One at a time; what comes meanwhile waits for the next. */
  async #sync(): Promise<void> {
    if (this.#syncing) return this.#syncing;
    this.#syncTimer?.cancel();
    this.#syncTimer = undefined;
    if (this.#unsynced.length === 0 || this.#broken || this.#closed) return;
    this.#syncing = this.#syncOnce();
    await this.#syncing;
  }

  async #syncOnce(): Promise<void> {
    const items = this.#unsynced.splice(0);
    try {
      this.#replaceWhenLost(items);
      await this.#chain.sync();
    } catch (error) {
      this.#syncing = undefined;
      return this.#break(error, [...items, ...this.#unsynced.splice(0)]);
    }
    this.#syncing = undefined;
    for (const { durable, resolve, note, seq, texts } of items) {
      if (durable) resolve(seq);
      if (note !== undefined) this.onDurable(note, texts.length);
    }
    if (this.#queue.length > 0) this.#flush();
    if (this.#broken) return;
    if (this.#unsynced.some(({ durable }) => durable)) void this.#sync();
    else this.#quietly('rotate', () => this.#chain.rotateWhenOld());
  }

  /** Lines are looked for once, before they count as durable: what was written to a file that is gone is written again. */
  #replaceWhenLost(unsynced: readonly Item[]): void {
    const why = this.#chain.whyLost();
    if (why === undefined) return;
    this.#chain.replace(why);
    this.#write(textsOf(unsynced));
    this.#number(unsynced);
  }

  #refuse(item: Item): void {
    this.#keep([item]);
    item.reject(this.#trouble ?? new ApiError('AuditUnavailable', 'this server is stopping'));
  }

  #keep(items: readonly Item[]): void {
    for (const item of items) {
      if (!item.first) this.#kept.push(item);
      else this.#dropped += 1;
    }
  }

  /** Nothing after the newest durable line can be relied on: it is written again. */
  #break(error: unknown, items: readonly Item[]): void {
    this.#broken = true;
    const message = `the audit log cannot be written: ${describeError(error)}; nothing is changed without it`;
    this.#fail(new ApiError('AuditUnavailable', message, { cause: error }));
    for (const item of [...this.#unsynced.splice(0), ...items]) this.#refuse(item);
  }

  #fail(trouble: ApiError): void {
    if (this.#trouble === undefined) this.#log.error('changes are refused', { error: trouble.message });
    this.#trouble = trouble;
    this.#recoverLater();
  }

  #recoverLater(): void {
    this.#recoverTimer ??= this.#clock.setTimer(recoverDelayMs, () => this.#recover(), { background: true });
  }

  #recover(): void {
    this.#recoverTimer = undefined;
    if (this.#closed) return;
    if (this.#syncing) return this.#recoverLater();
    try {
      if (this.#broken) this.#writeKept();
      this.#reserve.keep();
    } catch {
      return this.#recoverLater(); // the log was told when it began
    }
    this.#trouble = undefined;
    this.#log.info('the audit log can be written again');
  }

  #writeKept(): void {
    const why = this.#chain.whyLost();
    if (why === undefined) this.#chain.rewind();
    else this.#chain.replace(why);
    const resumed = ownText({ verb: 'resume' }, { outcome: 'done', count: this.#dropped });
    this.#write([...textsOf(this.#kept), resumed]);
    this.#chain.syncNow();
    for (const { note, texts } of this.#kept.splice(0)) if (note !== undefined) this.onDurable(note, texts.length);
    this.#dropped = 0;
    this.#broken = false;
  }

  #expire(): void {
    if (!this.#broken && !this.#syncing) this.#quietly('expire', () => this.#chain.expire());
    this.#expireTimer = this.#clock.setTimer(expireEveryMs, () => this.#expire(), { background: true });
  }

  /** A file that is too long or too old does no harm: the next time may succeed. */
  #quietly(what: string, run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#log.warn('the files of the audit log cannot be tended', { what, error: describeError(error) });
    }
  }
}

function textsOf(items: readonly Item[]): readonly string[] {
  const [first, second] = items;
  return first !== undefined && second === undefined ? first.texts : items.flatMap(({ texts }) => texts);
}

/** A commit does not wait for its lines. */
function ignore(): void {}

function whenFull(cause: unknown): ApiError {
  return new ApiError('AuditUnavailable', 'the disk of the audit log is full; free some space', { cause });
}

function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(String(error.code));
}
