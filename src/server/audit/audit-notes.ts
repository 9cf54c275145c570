// Who asked for a change, committed with it: a note of each commit in the store, under one of a few keys of this server. A key is free
// again when the lines of its note are durable, so the space is constant and nothing needs to be deleted. After a crash the missing lines
// are made of the notes (missing-lines.ts).

import { isRecord } from '../../base/is-record.ts';
import { keys } from '../../core/state/keys.ts';
import type { PlanAuthor } from '../../core/state/plan.ts';
import type { Write } from '../../store/store.ts';
import type { AuthorNotes } from '../commit.ts';
import type { AuditHead } from './audit-chain.ts';
import { endText } from './audit-entry.ts';

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

/** Entries `first` to `last`, committed together. */
interface Held {
  readonly slot: number;
  readonly first: number;
  readonly last: number;
  /** Those whose lines are not durable yet; undefined: all of them. */
  open: Set<number> | undefined;
}

/** Appends the lines of a commit, whose entries are numbered from `firstNote` on; answers whether they are in the file now. */
export type AppendCommitted = (texts: readonly string[], firstNote: number) => boolean;

export class AuditNotes implements AuthorNotes {
  readonly #server: string;
  readonly #head: () => AuditHead;
  readonly #nowMs: () => number;
  readonly #append: AppendCommitted;
  readonly #free: number[] = [];
  #slots = 0;
  #last: number;
  /** Notes with lines that are not durable yet, the oldest first. */
  readonly #held: Held[] = [];

  /** `last`: the newest number of the notes in the store. */
  constructor(parts: {
    server: string;
    last: number;
    head: () => AuditHead;
    nowMs: () => number;
    append: AppendCommitted;
  }) {
    this.#append = parts.append;
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
    let texts = '';
    for (let i = 0; i < authors.length; i++) {
      const { entry, noted } = authors[i] as PlanAuthor; // within its length
      noted.number = first + i;
      noted.slot = slot;
      texts += i === 0 ? `{${entry()}}` : `,{${entry()}}`;
    }
    this.#held.push({ slot, first, last: this.#last, open: undefined });
    const { seq, hash } = this.#head();
    const text = `{"kind":"auditNote","first":${first},"settled":${settled},"head":{"seq":${seq},"hash":"${hash}"},"timeMs":${this.#nowMs()},"entries":[${texts}]}`;
    return { key: keys.auditNote(this.#server, slot), value: Buffer.from(text) };
  }

  /** The commit is durable: its lines follow at once, before anything else learns of it. */
  committed(authors: readonly PlanAuthor[], revision: number): void {
    const texts = authors.map(
      ({ entry, noted }) => `${entry()},${endText({ outcome: 'done', revision, note: noted.number })}`,
    );
    const line = this.#append(texts, authors[0]?.noted.number ?? 0) ? 'written' : 'comes-later';
    for (const { noted } of authors) noted.line = line;
  }

  /** The commit did not happen: no line with these numbers will come. */
  dropped(authors: readonly PlanAuthor[]): void {
    for (const { noted } of authors) {
      if (noted.number !== undefined) this.durable(noted.number);
      noted.number = undefined;
    }
  }

  /** The commit may have happened. */
  inDoubt(authors: readonly PlanAuthor[]): void {
    for (const { noted } of authors) noted.doubtful = true;
  }

  /** The key under which it was committed, or may have been. */
  keyOf({ noted }: PlanAuthor): string {
    return keys.auditNote(this.#server, noted.slot);
  }

  /** The lines of `count` numbers, all of one commit, are durable. */
  durable(first: number, count = 1): void {
    const at = this.#held.findIndex((held) => held.first <= first && first <= held.last); // nearly always the oldest
    const held = this.#held[at];
    if (held === undefined) return;
    const isAll = count === held.last - held.first + 1;
    if (!isAll) {
      held.open ??= new Set(Array.from({ length: held.last - held.first + 1 }, (_, i) => held.first + i));
      for (let i = 0; i < count; i++) held.open.delete(first + i);
      if (held.open.size > 0) return;
    }
    this.#held.splice(at, 1);
    this.#free.push(held.slot);
  }

  /** How many keys there are: as many as were ever needed at the same time. */
  get slots(): number {
    return this.#slots;
  }

  #settled(): number {
    const oldest = this.#held[0];
    if (oldest === undefined) return this.#last;
    for (const number of oldest.open ?? []) return number - 1;
    return oldest.first - 1;
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
