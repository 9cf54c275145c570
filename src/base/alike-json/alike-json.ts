// Reads JSON texts of which many have one form, as the records of one kind do, in less than half the time of JSON.parse; others as that
// does. It remembers the last few forms: whoever has many to read at once makes one, and lets it go afterwards.

import { Differences } from './differences.ts';
import { formOf } from './form-of.ts';
import type { JsonForm, Sharing } from './json-form.ts';

/** What lies in the processor's cache is not fetched twice. A text that is larger is read alone. */
const foundBytesMax = 64 * 1024;
const formsMax = 24;
/** When there are as many, of so many texts that fit none one makes a new one. */
const unfitPerForm = 8;
/** A text that fits none costs so much, one that fits gives one back; when all is spent they have nothing in common, and none is tried for a while. */
const unfitCost = 8;
const creditMax = 64;
const restTexts = 10_000;
const decoder = new TextDecoder();

export interface Text {
  readonly value: Uint8Array;
}

export interface Readers<T> {
  /** Told what a text says, as JSON.parse would. */
  made(text: T, value: unknown): void;
  /** Reads one that has no form, or is no JSON. */
  alone(text: T): void;
}

interface Scanned<T> {
  readonly text: T;
  /** Undefined: it is read alone. */
  readonly form: JsonForm | undefined;
  /** How many of all differences are its own. */
  readonly differences: number;
}

export class AlikeJson {
  readonly #sharingOf: (sample: unknown) => Sharing;
  readonly #found = new Differences(foundBytesMax);
  /** The one that fitted last comes first. */
  readonly #forms: JsonForm[] = [];
  #credit = creditMax;
  #unfit = 0;
  #resting = 0;

  /** `sharingOf`: how the values of texts are kept that have the form of this one. */
  constructor(sharingOf: (sample: unknown) => Sharing) {
    this.#sharingOf = sharingOf;
  }

  /** Calls one of `readers` for each text, in their order. */
  read<T extends Text>(texts: readonly T[], readers: Readers<T>): void {
    const found = this.#found;
    let scanned: Scanned<T>[] = [];
    for (const text of texts) {
      const { value } = text;
      if (!found.hasRoomFor(value.length) && scanned.length > 0) {
        this.#make(scanned, readers);
        scanned = [];
      }
      const before = found.stepsEnd;
      const form = found.hasRoomFor(value.length) ? this.#scan(value) : undefined;
      scanned.push({ text, form, differences: found.stepsEnd - before });
    }
    this.#make(scanned, readers);
  }

  #make<T>(scanned: readonly Scanned<T>[], { made, alone }: Readers<T>): void {
    const found = this.#found;
    const parsed = found.parse();
    let allMade = false;
    try {
      for (const { text, form, differences } of scanned) {
        if (parsed && form) made(text, form.make(found, differences));
        else alone(text);
      }
      allMade = parsed;
    } finally {
      found.clear();
      if (!allMade) this.#forms.length = 0; // they would compare with what was not made
    }
  }

  /** The form of `bytes`; their differences are found then. */
  #scan(bytes: Uint8Array): JsonForm | undefined {
    if (this.#resting > 0) {
      this.#resting -= 1;
      return undefined;
    }
    const [likely] = this.#forms;
    if (likely?.scan(bytes, this.#found)) {
      if (this.#credit < creditMax) this.#credit += 1;
      return likely;
    }
    const at = this.#forms.findIndex((form) => form !== likely && form.scan(bytes, this.#found));
    const form = this.#forms[at] ?? this.#newForm(bytes);
    if (at >= 0) this.#forms.splice(at, 1);
    if (form) this.#forms.unshift(form);
    return form;
  }

  #newForm(bytes: Uint8Array): JsonForm | undefined {
    this.#unfit += 1;
    this.#credit -= unfitCost;
    if (this.#credit < 0) [this.#credit, this.#resting] = [creditMax, restTexts];
    if (this.#forms.length === formsMax && this.#unfit % unfitPerForm > 0) return undefined;
    const sample = parsed(bytes);
    const form = sample === undefined ? undefined : formOf(bytes, this.#sharingOf(sample));
    if (!form?.scan(bytes, this.#found)) return undefined;
    if (this.#forms.length === formsMax) this.#forms.pop();
    return form;
  }
}

/** Undefined: it is no JSON, as whoever reads it alone will say. */
function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch {
    return undefined;
  }
}
