// Takes what the guest sends of a program's output: into the log line by line, and artifacts as they are, each within its limit. What is
// beyond a limit is dropped, and counts as taken. Bytes that are in no line yet are not durable, and not acknowledged.

import { type GuestFrame, type RunStream, runStreams } from '../protocol.ts';
import { LogLines, logLine, type LogStream } from './log-lines.ts';
import { maskOf } from './mask.ts';
import type { RunStore } from './run-store.ts';

export interface OutputLimits {
  readonly logBytesMax: number;
  readonly artifactsBytesMax: number;
}

export class RunOutput {
  readonly #store: RunStore;
  readonly #limits: OutputLimits;
  #mask = maskOf([]);
  #lines = this.#newLines();
  /** Of each stream, in memory or durable. */
  #received: Record<RunStream, number>;
  #acknowledged: Record<RunStream, number>;
  #log: Buffer[] = [];
  #logBytes = 0;
  #truncated: boolean;
  #artifacts: Uint8Array[] = [];
  #artifactsBytes = 0;

  constructor(store: RunStore, limits: OutputLimits) {
    this.#store = store;
    this.#limits = limits;
    this.#received = { ...store.offsets };
    this.#acknowledged = { ...store.offsets };
    this.#truncated = store.record.logTruncated;
  }

  /** Before any output is taken. */
  mask(values: readonly string[]): void {
    this.#mask = maskOf(values);
  }

  #newLines(): Record<LogStream, LogLines> {
    const mask = (text: Buffer): Buffer => this.#mask(text);
    return { stdout: new LogLines('stdout', mask), stderr: new LogLines('stderr', mask) };
  }

  /** The guest begins again with what is not durable. */
  restart(): void {
    this.#lines = this.#newLines();
    this.#received = { ...this.#store.offsets };
    this.#acknowledged = { stdout: 0, stderr: 0, artifacts: 0 };
  }

  /** Whether bytes wait for the rest of their line. */
  get pending(): boolean {
    return this.#lines.stdout.pending + this.#lines.stderr.pending > 0;
  }

  get artifactsTooLarge(): boolean {
    return this.#received.artifacts > this.#limits.artifactsBytesMax;
  }

  /** False: something before it is missing. */
  take({ stream, offset, bytes }: Extract<GuestFrame, { kind: 'data' }>, atMs: number): boolean {
    if (this.#store.record.received) return true; // what is being sent is whole, and stays so
    const known = this.#received[stream] - offset;
    if (known < 0) return false;
    if (known >= bytes.length) return true;
    const fresh = bytes.subarray(known);
    this.#received[stream] += fresh.length;
    if (stream !== 'artifacts') this.#write(this.#lines[stream].push(fresh, atMs), atMs);
    else if (this.#received.artifacts <= this.#limits.artifactsBytesMax) {
      this.#artifacts.push(Buffer.from(fresh));
      this.#artifactsBytes += fresh.length;
    }
    return true;
  }

  /** What waits for the rest of its line becomes durable, as a part of a line. */
  flush(atMs: number): void {
    for (const lines of Object.values(this.#lines)) this.#write(lines.flush(atMs), atMs);
  }

  /** Makes durable what was taken. Returns what may be acknowledged since the last time. */
  async commit(): Promise<readonly { readonly stream: RunStream; readonly offset: number }[]> {
    const durable = this.#durable();
    const { record } = this.#store;
    if (this.#logBytes + this.#artifactsBytes > 0 || runStreams.some((stream) => durable[stream] !== record[stream])) {
      const [log, artifacts] = [Buffer.concat(this.#log), Buffer.concat(this.#artifacts)];
      await this.#store.append(log, artifacts, { ...durable, logTruncated: this.#truncated });
      this.#log = [];
      this.#artifacts = [];
      this.#logBytes = 0;
      this.#artifactsBytes = 0;
    }
    const acks = runStreams.filter((stream) => durable[stream] > this.#acknowledged[stream]);
    this.#acknowledged = durable;
    return acks.map((stream) => ({ stream, offset: durable[stream] }));
  }

  #durable(): Record<RunStream, number> {
    const of = (stream: LogStream): number => this.#received[stream] - this.#lines[stream].pending;
    return { stdout: of('stdout'), stderr: of('stderr'), artifacts: this.#received.artifacts };
  }

  #write(lines: readonly Buffer[], atMs: number): void {
    for (const line of lines) {
      if (this.#truncated) return;
      const size = this.#store.record.logBytes + this.#logBytes;
      this.#truncated = size + line.length > this.#limits.logBytesMax;
      const written = this.#truncated ? this.#notice(atMs) : line;
      this.#log.push(written);
      this.#logBytes += written.length;
    }
  }

  #notice(atMs: number): Buffer {
    const text = `berth: the log reached its limit of ${this.#limits.logBytesMax} bytes; the rest was dropped`;
    return logLine({ atMs, stream: 'stderr', tag: 'F', text: Buffer.from(text) });
  }
}
