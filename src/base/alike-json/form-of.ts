// Takes one JSON text apart: what others may have alike, and where they may differ. The code that makes a text of a form consists of names
// that JSON.stringify has written and of nothing else that the text says.

import { stepsMax } from './differences.ts';
import { endOfNumber, endOfPart, endOfText, openBrace, openBracket, quote } from './json-ends.ts';
import { type FormParts, JsonForm, numberStep, partStep, type Sharing, type Step, textStep } from './json-form.ts';

const fixedBytesMax = 32 * 1024;
/** Deeper than any record; what is deeper would end the stack some day. */
const depthMax = 32;
const decoder = new TextDecoder();

/** The form of `bytes`, which are JSON. Undefined: they are no object, too large, too deep, or not as JSON.stringify writes it. */
export function formOf(bytes: Uint8Array, sharing: Sharing): JsonForm | undefined {
  return new Taken(bytes, sharing).form();
}

type Entries = Parameters<Sharing['map']>[0];

class Taken {
  readonly #bytes: Uint8Array;
  readonly #sharing: Sharing;
  readonly #steps: Step[] = [];
  readonly #fixed: number[] = [];
  #at = 0;
  #depth = 0;

  constructor(bytes: Uint8Array, sharing: Sharing) {
    this.#bytes = bytes;
    this.#sharing = sharing;
  }

  form(): JsonForm | undefined {
    const source = this.#object();
    if (source === undefined || this.#at !== this.#bytes.length || this.#fixed.length > fixedBytesMax) return undefined;
    const sharing = this.#sharing;
    const makerOf = new Function('none', 'map', `return (steps) => (${source});`);
    const make = makerOf(none, (entries: Entries) => sharing.map(entries)) as FormParts['make']; // the source is that of such a function
    return new JsonForm({ fixed: this.#fixed, steps: this.#steps, make, sharing });
  }

  /** As the others below: answers the source of an expression that makes what stands next, and passes it. Undefined: it has no form. */
  #value(name: string): string | undefined {
    const byte = this.#bytes[this.#at];
    if (byte === openBrace || byte === openBracket) {
      if (this.#sharing.isPart(name)) return this.#part(name);
      if (byte === openBracket) return this.#array();
      return this.#sharing.isMap(name) ? this.#map(name) : this.#object();
    }
    if (byte === quote) return this.#text(name);
    for (const literal of ['true', 'false', 'null']) if (this.#pass(literal)) return literal;
    return this.#step(numberStep, name, endOfNumber(this.#bytes, this.#at));
  }

  #object(): string | undefined {
    const sources = new Map<string, string>();
    const members = this.#members('{', '}', () => {
      const name = this.#name();
      const source = name === undefined || sources.has(name) ? undefined : this.#value(name);
      if (name !== undefined && source !== undefined) sources.set(name, `${JSON.stringify(name)}: ${source}`);
      return source;
    });
    // In code that name is no member's.
    return members && !sources.has('__proto__') ? `{ ${[...sources.values()].join(', ')} }` : undefined;
  }

  #array(): string | undefined {
    const items = this.#members('[', ']', () => this.#value(''));
    return items && (items.length === 0 ? 'none' : `[${items.join(', ')}]`);
  }

  #map(name: string): string | undefined {
    const entries = this.#members('{', '}', () => {
      const key = this.#text('');
      if (key === undefined || !this.#pass(':')) return undefined;
      const value = this.#bytes[this.#at] === openBrace ? this.#part(name) : this.#value('');
      return value === undefined ? undefined : `[${key}, ${value}]`;
    });
    return entries && `map([${entries.join(', ')}])`;
  }

  #members(open: string, close: string, member: () => string | undefined): readonly string[] | undefined {
    const sources: string[] = [];
    this.#depth += 1;
    if (this.#depth > depthMax || !this.#pass(open)) return undefined;
    while (!this.#pass(close)) {
      const source = sources.length === 0 || this.#pass(',') ? member() : undefined;
      if (source === undefined) return undefined;
      sources.push(source);
    }
    this.#depth -= 1;
    return sources;
  }

  #text(name: string): string | undefined {
    return this.#step(textStep, name, endOfText(this.#bytes, this.#at));
  }

  #part(name: string): string | undefined {
    return this.#step(partStep, name, endOfPart(this.#bytes, this.#at));
  }

  #step(kind: Step['kind'], name: string, end: number): string | undefined {
    if (end <= this.#at || this.#steps.length === stepsMax) return undefined;
    this.#steps.push({ kind, name, fixedEnd: this.#fixed.length, value: undefined });
    this.#at = end;
    return `steps[${this.#steps.length - 1}].value`;
  }

  /** That of a member, with its colon. */
  #name(): string | undefined {
    const end = endOfText(this.#bytes, this.#at);
    if (end < 0) return undefined;
    const name: unknown = JSON.parse(decoder.decode(this.#bytes.subarray(this.#at, end)));
    for (; this.#at < end; this.#at++) this.#fixed.push(this.#bytes[this.#at] ?? 0);
    return this.#pass(':') && typeof name === 'string' ? name : undefined;
  }

  /** Whether this stands next. */
  #pass(text: string): boolean {
    for (let i = 0; i < text.length; i++) if (this.#bytes[this.#at + i] !== text.charCodeAt(i)) return false;
    for (let i = 0; i < text.length; i++) this.#fixed.push(text.charCodeAt(i));
    this.#at += text.length;
    return true;
  }
}

const none: readonly never[] = Object.freeze([]);
