// Who asked for a change, committed with it: a note of each commit in the store, under one of a few keys of this server. A key is free
// again when the lines of its note are durable, so the space is constant and nothing needs to be deleted. After a crash the missing lines
// are made of the notes (missing-lines.ts).

import { isRecord } from '../../base/is-record.ts';
import { keys } from '../../core/state/keys.ts';
import type { PlanAuthor } from '../../core/state/plan.ts';
import type { Write } from '../../store/store.ts';
import type { AuthorNotes } from '../commit.ts';
import type { AuditHead } from './audit-chain.ts';

/** A note as it stands in the store. */
export interface AuditNote {
  readonly kind: 'auditNote';
  /** The number of the first entry; the others follow. */
  readonly first: number;
  /** The lines of all numbers up to this one were durable. */
  readonly settled: number;
  /** The newest durable line. The lines of these entries come later. */
  readonly head: AuditHead;
  readonly timeMs: number;
  /** Each is an `AuditEntry`. */
  readonly entries: readonly unknown[];
}

interface Held {
  readonly slot: number;
  readonly first: number;
  readonly numbers: Set<number>;
}

export class AuditNotes implements AuthorNotes {
  readonly #server: string;
  readonly #head: () => AuditHead;
  readonly #nowMs: () => number;
  readonly #free: number[] = [];
  #slots = 0;
  #last: number;
  /** Notes with lines that are not durable yet, the oldest first. */
  readonly #held = new Map<number, Held>();
  readonly #numbers = new WeakMap<PlanAuthor, { readonly number: number; readonly slot: number }>();
  readonly #heldOf = new Map<number, Held>();
  readonly #doubtful = new WeakSet<PlanAuthor>();

  /** `last`: the newest number of the notes in the store. */
  constructor(parts: { server: string; last: number; head: () => AuditHead; nowMs: () => number }) {
    this.#server = parts.server;
    this.#last = parts.last;
    this.#head = parts.head;
    this.#nowMs = parts.nowMs;
  }

  /** The write that goes with a commit. */
  noteFor(authors: readonly PlanAuthor[]): Write {
    const slot = this.#free.pop() ?? this.#slots++;
    const first = this.#last + 1;
    const settled = this.#settled();
    this.#last += authors.length;
    const held: Held = { slot, first, numbers: new Set() };
    for (const [i, author] of authors.entries()) {
      const number = first + i;
      held.numbers.add(number);
      this.#heldOf.set(number, held);
      this.#numbers.set(author, { number, slot });
    }
    this.#held.set(first, held);
    const { seq, hash } = this.#head();
    const texts = authors.map(({ entry }) => `{${entry}}`).join();
    const text = `{"kind":"auditNote","first":${first},"settled":${settled},"head":{"seq":${seq},"hash":"${hash}"},"timeMs":${this.#nowMs()},"entries":[${texts}]}`;
    return { key: keys.auditNote(this.#server, slot), value: Buffer.from(text) };
  }

  /** The commit did not happen: no line with these numbers will come. */
  dropped(authors: readonly PlanAuthor[]): void {
    for (const author of authors) {
      const at = this.#numbers.get(author);
      this.#numbers.delete(author);
      if (at) this.durable(at.number);
    }
  }

  /** The commit may have happened. */
  inDoubt(authors: readonly PlanAuthor[]): void {
    for (const author of authors) this.#doubtful.add(author);
  }

  isDoubtful(author: PlanAuthor): boolean {
    return this.#doubtful.has(author);
  }

  /** The number under which the entry was committed, or may have been. */
  numberOf(author: PlanAuthor): number | undefined {
    return this.#numbers.get(author)?.number;
  }

  /** The key under which it was committed, or may have been. */
  keyOf(author: PlanAuthor): string | undefined {
    const at = this.#numbers.get(author);
    return at && keys.auditNote(this.#server, at.slot);
  }

  /** The line of this number is durable. */
  durable(number: number): void {
    const held = this.#heldOf.get(number);
    if (held === undefined) return;
    this.#heldOf.delete(number);
    held.numbers.delete(number);
    if (held.numbers.size > 0) return;
    this.#held.delete(held.first);
    this.#free.push(held.slot);
  }

  /** How many keys there are: as many as were ever needed at the same time. */
  get slots(): number {
    return this.#slots;
  }

  #settled(): number {
    for (const { numbers } of this.#held.values()) for (const number of numbers) return number - 1;
    return this.#last;
  }
}

/** Undefined: it is none. */
export function decodeNote(value: Uint8Array): AuditNote | undefined {
  let note: unknown;
  try {
    note = JSON.parse(Buffer.from(value).toString());
  } catch {
    return undefined; // changed by something else, and no line can be made of it
  }
  if (!isRecord(note) || note['kind'] !== 'auditNote' || !isRecord(note['head'])) return undefined;
  const { first, settled, timeMs, entries } = note;
  const { seq, hash } = note['head'];
  if (typeof first !== 'number' || typeof settled !== 'number' || typeof timeMs !== 'number') return undefined;
  if (typeof seq !== 'number' || typeof hash !== 'string' || !Array.isArray(entries)) return undefined;
  return { kind: 'auditNote', first, settled, head: { seq, hash }, timeMs, entries };
}
