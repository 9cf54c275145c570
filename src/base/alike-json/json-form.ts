// JSON texts that differ in their values only have one form. Names and punctuation of a text are only compared with those of the form, and
// each value with the one before; what is the same is not read again. After Bonetta and Brantner, "FAD.js: Fast JSON Data Access Using
// JIT-based Speculative Optimizations" (VLDB 2017). It never guesses: a text of another form is not read.

import { assert } from '../assert.ts';
import type { Differences } from './differences.ts';
import { endOfNumber, endOfPart, endOfText, isInNumber, nine, zero } from './json-ends.ts';

/** How values are kept. Names are those they stand under, `''` in an array. */
export interface Sharing {
  /** Whether an object or array there is read as a whole: in one text after another it may be the same. */
  isPart(name: string): boolean;
  /** Whether an object there has other names in each text. Objects in it are parts. */
  isMap(name: string): boolean;
  /** What such an object becomes. */
  map(entries: readonly (readonly [string, unknown])[]): unknown;
  /** What a text or a part becomes that is not the same as in the text before. */
  kept(name: string, value: unknown): unknown;
}

/** A place in which texts may differ. */
export interface Step {
  readonly kind: typeof textStep | typeof numberStep | typeof partStep;
  readonly name: string;
  /** Where in the fixed bytes ends what stands before it. */
  readonly fixedEnd: number;
  /** In the text that was made last. */
  value: unknown;
}

export const textStep = 0;
export const numberStep = 1;
export const partStep = 2;
/** By kind: what is longer is read anew each time. */
const lastBytesMax = [128, 0, 2_048] as const;
/** Every number of so many digits is one that a double holds. */
const digitsMax = 15;
const decoder = new TextDecoder();

export interface FormParts {
  readonly sharing: Sharing;
  /** Bytes that all texts of this form have. */
  readonly fixed: readonly number[];
  readonly steps: readonly Step[];
  /** A text from the values of its steps. */
  readonly make: (steps: readonly Step[]) => unknown;
}

/** Whoever scans texts with it makes them afterwards, in the same order. */
export class JsonForm {
  readonly #parts: FormParts;
  readonly #fixed: Uint8Array;
  // By step, side by side: they are looked at millions of times in a second.
  readonly #kinds: Uint8Array;
  readonly #fixedEnds: Uint16Array;
  /** Of the text that was scanned last, and where in it the bytes of each step begin. */
  readonly #last: Uint8Array;
  readonly #lastAt: Uint32Array;
  /** How many; -1: unknown, or too many. */
  readonly #lastLengths: Int32Array;
  readonly #lastNumbers: Float64Array;

  constructor(parts: FormParts) {
    const { fixed, steps } = parts;
    this.#parts = parts;
    this.#fixed = Uint8Array.from(fixed);
    this.#kinds = Uint8Array.from(steps, ({ kind }) => kind);
    this.#fixedEnds = Uint16Array.from(steps, ({ fixedEnd }) => fixedEnd);
    let lastBytes = 0;
    this.#lastAt = Uint32Array.from(steps, ({ kind }) => (lastBytes += lastBytesMax[kind]) - lastBytesMax[kind]);
    this.#last = new Uint8Array(lastBytes);
    this.#lastLengths = new Int32Array(steps.length).fill(-1);
    this.#lastNumbers = new Float64Array(steps.length).fill(Number.NaN);
  }

  /** True: `bytes`, for which `found` has room, are JSON of this form, provided that what was added to `found` is JSON. */
  scan(bytes: Uint8Array, found: Differences): boolean {
    const mark = found.mark();
    if (this.#scan(bytes, found)) return true;
    // The text is made by nobody, so the next one must not rest on it.
    for (const step of found.steps.subarray(mark.stepsEnd, found.stepsEnd)) {
      this.#lastLengths[step] = -1;
      this.#lastNumbers[step] = Number.NaN;
    }
    found.cutTo(mark);
    return false;
  }

  /** What the next text that was scanned says; so many differences are its own. */
  make(found: Differences, differences: number): unknown {
    const { steps, sharing, make } = this.#parts;
    for (let i = 0; i < differences; i++) {
      const step = steps[found.takeStep()];
      assert(step, 'a form has the steps that it has found');
      step.value = step.kind === numberStep ? found.takeNumber() : sharing.kept(step.name, found.takeValue());
    }
    return make(steps);
  }

  #scan(bytes: Uint8Array, found: Differences): boolean {
    const { numbers, steps } = found;
    const { length } = bytes;
    const fixed = this.#fixed;
    const kinds = this.#kinds;
    const fixedEnds = this.#fixedEnds;
    const lastNumbers = this.#lastNumbers;
    let at = 0;
    let fixedAt = 0;
    for (let step = 0; step < kinds.length; step++) {
      const fixedEnd = fixedEnds[step] ?? 0;
      if (at + fixedEnd - fixedAt >= length) return false;
      for (; fixedAt < fixedEnd; fixedAt++, at++) if (bytes[at] !== fixed[fixedAt]) return false;
      const from = at;
      if (kinds[step] === numberStep) {
        let value = 0;
        for (; at < length; at++) {
          const byte = bytes[at] ?? 0;
          if (byte < zero || byte > nine) break;
          value = 10 * value + (byte - zero);
        }
        const digits = at - from;
        if (digits === 0 || digits > digitsMax || (digits > 1 && bytes[from] === zero) || isInNumber(bytes[at])) {
          at = endOfNumber(bytes, from);
          value = numberIn(bytes.subarray(from, at));
          if (Number.isNaN(value)) return false;
        }
        if (value === lastNumbers[step]) continue;
        lastNumbers[step] = value;
        numbers[found.numbersEnd++] = value;
      } else {
        at = this.#endOfSame(step, bytes, from);
        if (at > from) continue;
        at = kinds[step] === textStep ? endOfText(bytes, from) : endOfPart(bytes, from);
        if (at < 0) return false;
        this.#remember(step, bytes, from, at);
        found.add(bytes, from, at);
      }
      steps[found.stepsEnd++] = step;
    }
    if (length - at !== fixed.length - fixedAt) return false;
    for (; at < length; fixedAt++, at++) if (bytes[at] !== fixed[fixedAt]) return false;
    return true;
  }

  /** `from`: another value begins there. The same one ends where its quotes or brackets do. */
  #endOfSame(step: number, bytes: Uint8Array, from: number): number {
    const length = this.#lastLengths[step] ?? -1;
    const last = this.#last;
    const lastAt = this.#lastAt[step] ?? 0;
    let same = 0;
    while (same < length && bytes[from + same] === last[lastAt + same]) same += 1;
    return same === length ? from + length : from;
  }

  #remember(step: number, bytes: Uint8Array, from: number, end: number): void {
    const last = this.#last;
    let to = this.#lastAt[step] ?? 0;
    const room = (this.#lastAt[step + 1] ?? last.length) - to;
    this.#lastLengths[step] = end - from <= room ? end - from : -1;
    if (end - from <= room) for (let at = from; at < end; at++) last[to++] = bytes[at] ?? 0;
  }
}

/** With a sign, a point or an exponent; NaN: it is none, or -0, which is the same as 0 to whoever compares. */
function numberIn(bytes: Uint8Array): number {
  try {
    const value: unknown = JSON.parse(decoder.decode(bytes));
    return typeof value === 'number' && value !== 0 ? value : Number.NaN;
  } catch {
    return Number.NaN;
  }
}
