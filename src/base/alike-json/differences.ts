// What texts that were scanned one after another have of their own: values, and of which step each is, in the order in which they were found
// and are taken. Texts and parts are read all at once, by JSON.parse.

import { assert } from '../assert.ts';
import { closeBracket, comma, openBracket } from './json-ends.ts';

/** Of all texts that are scanned together. */
const differencesMax = 16 * 1024;
/** Of one text. */
export const stepsMax = 500;
const decoder = new TextDecoder();

/** How much was found. */
export interface Mark {
  readonly jsonEnd: number;
  readonly numbersEnd: number;
  readonly stepsEnd: number;
}

export class Differences {
  /** A list, begun. */
  readonly json: Uint8Array;
  jsonEnd = 1;
  readonly numbers = new Float64Array(differencesMax);
  numbersEnd = 0;
  readonly steps = new Uint16Array(differencesMax);
  stepsEnd = 0;
  /** What the list says. */
  #values: readonly unknown[] = [];
  #valuesTaken = 0;
  #numbersTaken = 0;
  #stepsTaken = 0;

  /** `bytesMax`: of the values that are found before they are taken. */
  constructor(bytesMax: number) {
    this.json = new Uint8Array(bytesMax);
    this.json[0] = openBracket;
  }

  /** A text of so many bytes has no more of its own: behind each value stands one more of them. */
  hasRoomFor(bytes: number): boolean {
    return this.jsonEnd + bytes <= this.json.length && this.stepsEnd + stepsMax <= differencesMax;
  }

  /** Puts a value that is no number behind the others. */
  add(bytes: Uint8Array, from: number, end: number): void {
    const { json } = this;
    let to = this.jsonEnd;
    for (let at = from; at < end; at++) json[to++] = bytes[at] ?? 0;
    json[to++] = comma;
    this.jsonEnd = to;
  }

  mark(): Mark {
    return { jsonEnd: this.jsonEnd, numbersEnd: this.numbersEnd, stepsEnd: this.stepsEnd };
  }

  /** Forgets what was found since. */
  cutTo({ jsonEnd, numbersEnd, stepsEnd }: Mark): void {
    this.jsonEnd = jsonEnd;
    this.numbersEnd = numbersEnd;
    this.stepsEnd = stepsEnd;
  }

  /** Before anything is taken. False: something that was found is no JSON. */
  parse(): boolean {
    const json = this.json.subarray(0, Math.max(this.jsonEnd, 2));
    json[json.length - 1] = closeBracket; // instead of the last comma
    try {
      const values: unknown = JSON.parse(decoder.decode(json));
      this.#values = Array.isArray(values) ? values : [];
      return this.#values.length === this.stepsEnd - this.numbersEnd;
    } catch {
      return false;
    }
  }

  /** Answers the step whose value is to be taken next. */
  takeStep(): number {
    const step = this.steps[this.#stepsTaken++];
    assert(step !== undefined && this.#stepsTaken <= this.stepsEnd, 'as many steps are taken as were found');
    return step;
  }

  takeNumber(): number {
    const number = this.numbers[this.#numbersTaken++];
    assert(number !== undefined, 'as many numbers are taken as were found');
    return number;
  }

  takeValue(): unknown {
    return this.#values[this.#valuesTaken++];
  }

  get allTaken(): boolean {
    return this.#stepsTaken === this.stepsEnd && this.#valuesTaken === this.#values.length;
  }

  clear(): void {
    this.cutTo({ jsonEnd: 1, numbersEnd: 0, stepsEnd: 0 });
    this.#values = [];
    this.#valuesTaken = 0;
    this.#numbersTaken = 0;
    this.#stepsTaken = 0;
  }
}
