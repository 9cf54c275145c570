// The trace of a run: its lines, kept only on demand as they are slow, and a fingerprint of everything that happened.

import type { Timeline } from '../world/timeline.ts';
import { createTraceHash } from './trace-hash.ts';

export class Trace {
  readonly #timeline: Timeline;
  readonly #keepsLines: boolean;
  readonly #hash = createTraceHash();
  readonly #lines: string[] = [];

  constructor({ timeline, keepsLines }: { readonly timeline: Timeline; readonly keepsLines: boolean }) {
    this.#timeline = timeline;
    this.#keepsLines = keepsLines;
  }

  readonly line = (line: () => string): void => {
    if (this.#keepsLines) this.#lines.push(`${(this.#timeline.nowMs / 1000).toFixed(3).padStart(9)} ${line()}`);
  };

  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Adds the current moment to the fingerprint, to the microsecond: messages sent in order lie that close. */
  addMoment(): void {
    this.#hash.add(Math.round(this.#timeline.nowMs * 1000));
  }

  addRequest({
    peer,
    path,
    bodyText,
  }: {
    readonly peer: string;
    readonly path: string;
    readonly bodyText?: string | undefined;
  }): void {
    this.#hash.addText(peer);
    this.#hash.addText(path);
    this.#hash.add(bodyText?.length ?? -1);
  }

  addGuest(host: string, instanceId: string): void {
    this.#hash.addText(host);
    this.#hash.addText(instanceId);
  }

  fingerprint(): string {
    return this.#hash.text();
  }
}
