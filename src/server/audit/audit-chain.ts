// The hash chain of one server over its files: each line has the hash of the one before, and each file begins with what the file before
// had. Here is what is written and what is durable; audit-log.ts decides when.

import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import { type AuditEnd, endText, entryText, lineHash, noHash } from './audit-entry.ts';
import { type AuditDisk, AuditFile, syncFolder, systemDisk } from './audit-file.ts';
import { auditFiles, endOfFile, parseLine } from './audit-folder.ts';

/** A line of a log, and its hash. */
export interface AuditHead {
  readonly seq: number;
  readonly hash: string;
}

export interface AuditChainOptions {
  readonly directory: string;
  /** The name of this server, which stands in each line. */
  readonly server: string;
  readonly fileBytesMax: number;
  readonly keptMs: number;
  /** The newest line that the store knows of. */
  readonly head?: AuditHead | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Takes each line, for copies elsewhere. Must not throw. */
  readonly copy?: ((line: string) => void) | undefined;
  readonly disk?: AuditDisk | undefined;
}

interface Opened {
  readonly file: AuditFile;
  readonly head: AuditHead;
  /** A line to begin with. */
  readonly first?: string;
}

/** A file is closed after this long although it is short: retention deletes whole files. */
const fileMsMin = 3_600_000;

export class AuditChain {
  readonly #options: AuditChainOptions;
  readonly #disk: AuditDisk;
  readonly #server: string;
  #file: AuditFile;
  #fileSinceMs: number;
  #written: AuditHead;
  #synced: AuditHead & { readonly bytes: number };

  /** Throws when the folder cannot be read or written. */
  constructor(options: AuditChainOptions) {
    this.#options = options;
    this.#disk = options.disk ?? systemDisk;
    this.#server = JSON.stringify(options.server);
    mkdirSync(options.directory, { recursive: true, mode: 0o700 });
    const { file, head, first } = this.#openNewest();
    this.#file = file;
    this.#written = head;
    this.#synced = { ...head, bytes: file.bytes };
    this.#fileSinceMs = sinceOf(file.path) ?? options.clock.nowMs();
    if (first !== undefined) this.#writeNow(first);
  }

  /** The newest line that is durable. */
  get durable(): AuditHead {
    return this.#synced;
  }

  /** The newest line that was written. */
  get newest(): AuditHead {
    return this.#written;
  }

  /** How long the newest file is, of whole lines. */
  get bytes(): number {
    return this.#file.bytes;
  }

  /** Writes a line for each of `texts`, all or none. */
  write(texts: readonly string[]): void {
    let { seq, hash } = this.#written;
    const time = new Date(this.#options.clock.nowMs()).toISOString();
    const lines = texts.map((text) => {
      const line = `{"seq":${(seq += 1)},"prev":"${hash}","time":"${time}","server":${this.#server},${text}}`;
      hash = lineHash(line);
      return line;
    });
    this.#file.write(`${lines.join('\n')}\n`);
    this.#written = { seq, hash };
    if (this.#options.copy) lines.forEach(this.#options.copy);
  }

  /** Makes durable what was written before. Not twice at the same time. */
  async sync(): Promise<void> {
    const at = { ...this.#written, bytes: this.#file.bytes };
    await this.#file.sync();
    this.#synced = at;
  }

  syncNow(): void {
    this.#file.syncNow();
    this.#synced = { ...this.#written, bytes: this.#file.bytes };
  }

  /** Takes back what is not durable. */
  rewind(): void {
    const { seq, hash, bytes } = this.#synced;
    this.#file.truncate(bytes);
    this.#written = { seq, hash };
  }

  /** Why the newest file is not there as this process has left it; undefined: it is. */
  whyLost(): string | undefined {
    return this.#file.whyNotOurs();
  }

  /** Begins a new file in place of a lost one, after the newest line that was durable in it. */
  replace(why: string): void {
    const { path } = this.#file;
    this.#options.log.error('the file of the audit log is gone; a new one is begun', { path, why });
    this.#written = { seq: this.#synced.seq, hash: this.#synced.hash };
    this.#begin('Replaced');
  }

  /** Begins a new file when this one is long or old. */
  rotateWhenOld(): void {
    const { clock, fileBytesMax, keptMs } = this.#options;
    const isOld = clock.nowMs() - this.#fileSinceMs > Math.max(keptMs / 10, fileMsMin);
    if (this.#file.bytes < fileBytesMax && !isOld) return;
    this.syncNow();
    this.#begin();
    this.expire();
  }

  /** Deletes whole files that are too old, and says so first. */
  expire(): void {
    const { clock, keptMs, directory } = this.#options;
    for (const { path, name, firstSeq } of auditFiles(directory)) {
      if (path === this.#file.path || clock.nowMs() - statSync(path).mtimeMs < keptMs) continue;
      const { seq, hash } = endOfFile(path);
      const end: AuditEnd = { outcome: 'done', count: seq - firstSeq + 1, head: hash };
      this.#writeNow(ownText({ verb: 'expire', object: name }, end));
      rmSync(path);
      syncFolder(directory);
    }
  }

  close(): void {
    this.#file.close();
  }

  #begin(reason?: string): void {
    const old = this.#file;
    this.#file = AuditFile.create(this.#options.directory, this.#written.seq + 1, this.#disk);
    old.close();
    this.#fileSinceMs = this.#options.clock.nowMs();
    this.#synced = { ...this.#written, bytes: 0 };
    const count = this.#written.seq - old.firstSeq + 1;
    this.#writeNow(ownText({ verb: 'begin', object: old.name }, { outcome: 'done', reason, count }));
  }

  #writeNow(text: string): void {
    this.write([text]);
    this.syncNow();
  }

  #openNewest(): Opened {
    const { directory, head: known, log } = this.#options;
    for (const { name, path, firstSeq } of auditFiles(directory).toReversed()) {
      const end = endOfFile(path);
      if (end.seq === 0 && !end.damaged) {
        rmSync(path); // a crash came before its first line was whole
        continue;
      }
      // What the store knows of and the file does not have is never numbered again: the gap stays visible.
      const isCut = known !== undefined && known.seq > end.seq;
      if (isCut || end.damaged) {
        const reason = isCut ? 'TailCut' : 'Damaged';
        log.error('the audit log was changed by something else', { file: name, fault: reason });
        const damagedSeq = Math.max(end.seq, firstSeq - 1) + 1;
        const head = isCut ? known : { seq: damagedSeq, hash: end.seq === 0 ? noHash : end.hash };
        return this.#openNew(head, { name, count: end.seq - firstSeq + 1, reason });
      }
      const file = AuditFile.reopen(path, { firstSeq, bytes: end.bytes }, this.#disk);
      const head = { seq: end.seq, hash: end.hash };
      if (end.tornBytes === 0) return { file, head };
      return {
        file,
        head,
        first: ownText({ verb: 'repair', object: name }, { outcome: 'done', count: end.tornBytes }),
      };
    }
    if (known === undefined) return this.#openNew({ seq: 0, hash: noHash }, { count: 0 });
    log.error('the files of the audit log are missing', { directory, lines: known.seq });
    return this.#openNew(known, { count: 0, reason: 'FileMissing' });
  }

  #openNew(head: AuditHead, before: { name?: string; count: number; reason?: string }): Opened {
    const { name, count, reason } = before;
    const first = ownText({ verb: 'begin', object: name }, { outcome: 'done', reason, count });
    return { file: AuditFile.create(this.#options.directory, head.seq + 1, this.#disk), head, first };
  }
}

/** A line of the log about itself. */
export function ownText({ verb, object }: { verb: string; object?: string | undefined }, end: AuditEnd): string {
  return `${entryText({ face: 'server', verb, kind: 'audit', object })},${endText(end)}`;
}

/** When a file was begun, from its first line. */
function sinceOf(path: string): number | undefined {
  const text = readFileSync(path, 'utf8');
  const time = Date.parse(String(parseLine(text.slice(0, text.indexOf('\n')))?.['time']));
  return Number.isNaN(time) ? undefined : time;
}
