// How far the log of one container has been read. An engine can only resume at a time, and podman's times have whole
// seconds, so a position also counts the lines of its time.

import { type Static, Type } from 'typebox';
import type { Frame } from './frames.ts';

/** The time of the last line that was read, as the engine wrote it, and how many lines of that time were read. */
export const Position = Type.Object({ time: Type.String({ maxLength: 64 }), lines: Type.Integer({ minimum: 1 }) });
export type Position = Static<typeof Position>;

/** The time to ask the engine for, in seconds: a second earlier than the position, and 0 for the beginning. */
export function sinceSecondsOf(position: Position | undefined): number {
  return position === undefined ? 0 : Math.max(0, Number(nanoseconds(position.time) / second) - 1);
}

/** Drops lines up to a position, and counts the lines after it. */
export class LogResumption {
  readonly #known: Position | undefined;
  #position: Position | undefined;
  #resuming: boolean;
  #skip: number;
  #dropping = false;

  constructor(known: Position | undefined) {
    this.#known = known;
    this.#position = known;
    this.#resuming = known !== undefined;
    this.#skip = known?.lines ?? 0;
  }

  get position(): Position | undefined {
    return this.#position;
  }

  /** The new data of these frames, without the engine's times. */
  take(frames: readonly Frame[]): Buffer {
    const fresh: Buffer[] = [];
    for (const { data, begins } of frames) {
      if (!begins) {
        if (!this.#dropping) fresh.push(data);
        continue;
      }
      const space = data.indexOf(' ');
      const time = data.subarray(0, Math.max(0, space)).toString('latin1');
      this.#dropping = this.#isOld(time);
      if (this.#dropping) continue;
      this.#position = this.#position?.time === time ? { time, lines: this.#position.lines + 1 } : { time, lines: 1 };
      fresh.push(data.subarray(space + 1));
    }
    return Buffer.concat(fresh);
  }

  #isOld(time: string): boolean {
    if (!this.#resuming || this.#known === undefined) return false;
    const [its, last] = [nanoseconds(time), nanoseconds(this.#known.time)];
    if (its < last) return true;
    if (its === last && this.#skip > 0) {
      this.#skip -= 1;
      return true;
    }
    this.#resuming = false; // after the position, times may jump in either direction
    return false;
  }
}

const second = 1_000_000_000n;

/** Since the Unix epoch, of "2026-11-22T05:38:44.12Z". 0 for text that is not a time. */
function nanoseconds(time: string): bigint {
  const [, whole = '', fraction = '', zone = ''] = /^([^.Z+]{19})(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/.exec(time) ?? [];
  const milliseconds = Date.parse(`${whole}${zone}`);
  if (Number.isNaN(milliseconds)) return 0n;
  return BigInt(milliseconds) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
}
