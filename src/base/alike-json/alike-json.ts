// Reads JSON texts of which many have one form, as the records of one kind do, in half the time of JSON.parse; those that have none are left
// to its user. It remembers the last few forms: whoever has many to read at once makes one, and lets it go afterwards.

import { assert } from '../assert.ts';
import { Differences } from './differences.ts';
import { formOf } from './form-of.ts';
import type { JsonForm, Sharing } from './json-form.ts';

/** What lies in the processor's cache is not fetched twice. A text that is larger is read alone. */
const foundBytesMax = 64 * 1024;
/** Four for each of the three kinds that a start reads at a time: to compare with more costs as much as it spares. */
const formsMax = 12;
/** When there are as many, of so many texts that fit none one makes a new one. */
const unfitPerForm = 8;
/** A text that fits spares what two in vain cost; a form is made in the time of eight. When all is spent none is tried for a while. */
const fitGain = 2;
const formCost = 8;
const creditMax = 128;
const restTexts = 2_000;
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

  /** Calls one of `readers` for each text, in their order. Throws what they throw; the texts behind are not read then. */
  read<T extends Text>(texts: readonly T[], readers: Readers<T>): void {
    try {
      this.#read(texts, readers);
    } catch (error) {
      this.#begin(false);
      throw error;
    }
  }

  #read<T extends Text>(texts: readonly T[], readers: Readers<T>): void {
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
    for (const { text, form, differences } of scanned) {
      if (parsed && form) made(text, form.make(found, differences));
      else alone(text);
    }
    if (parsed) assert(found.allTaken, 'what was found of texts is what they are made of');
    this.#begin(parsed);
  }

  /** `allMade`: or else the forms would compare with texts that were not. */
  #begin(allMade: boolean): void {
    this.#found.clear();
    if (!allMade) this.#forms.length = 0;
  }

  /** The form of `bytes`; their differences are found then. */
  #scan(bytes: Uint8Array): JsonForm | undefined {
    if (this.#resting > 0) {
      this.#resting -= 1;
      return undefined;
    }
    const at = this.#forms.findIndex((form) => form.scan(bytes, this.#found));
    const known = this.#forms[at];
    this.#spend(known ? at - fitGain : this.#forms.length + formCost);
    if (at === 0) return known;
    const form = known ?? this.#newForm(bytes);
    if (known) this.#forms.splice(at, 1);
    if (form) this.#forms.unshift(form);
    return form;
  }

  #spend(cost: number): void {
    this.#credit = Math.min(this.#credit - cost, creditMax);
    if (this.#credit < 0) [this.#credit, this.#resting] = [creditMax, restTexts];
  }

  #newForm(bytes: Uint8Array): JsonForm | undefined {
    this.#unfit += 1;
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
