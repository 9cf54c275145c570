// At the start of a server: what it has committed and not logged, because it crashed in between. Each server looks after its own notes.

import { keys } from '../../core/state/keys.ts';
import type { Store } from '../../store/store.ts';
import type { AuditHead } from './audit-chain.ts';
import type { AuditLog } from './audit-log.ts';
import { type AuditNote, decodeNote } from './audit-notes.ts';
import { readLines } from './read-lines.ts';

interface StoredNote extends AuditNote {
  readonly revision: number;
}

/** The notes of a server, as its store has them. */
export interface KnownNotes {
  /** The newest number; 0: there is none. */
  readonly last: number;
  /** The newest line that they know of. */
  readonly head: AuditHead | undefined;
  readonly notes: readonly StoredNote[];
}

export async function readNotes(store: Store, server: string): Promise<KnownNotes> {
  const { entries } = await store.list(keys.auditNotes(server));
  const notes = entries.flatMap(({ value, revision }) => {
    const note = decodeNote(value);
    return note ? [{ ...note, revision }] : [];
  });
  notes.sort((a, b) => a.first - b.first);
  const newest = notes.at(-1);
  const head = notes.reduce<AuditHead | undefined>((a, b) => (a && a.seq > b.head.seq ? a : b.head), undefined);
  return { last: newest ? newest.first + newest.entries.length - 1 : 0, head, notes };
}

/** Appends what is missing; answers how many lines. */
export async function appendMissing(log: AuditLog, { notes }: KnownNotes): Promise<number> {
  const settled = Math.max(0, ...notes.map((note) => note.settled));
  const wanted = new Map<number, { readonly entry: unknown; readonly revision: number }>();
  let after = Number.POSITIVE_INFINITY;
  for (const { first, entries, revision, head } of notes) {
    for (const [i, entry] of entries.entries()) {
      if (first + i <= settled) continue;
      wanted.set(first + i, { entry, revision });
      after = Math.min(after, head.seq);
    }
  }
  if (wanted.size === 0) return 0;
  // A note is committed when the newest durable line is `head`: its lines come later.
  for await (const { fields } of readLines(log.directory, { fromSeq: after + 1 })) {
    const note = fields?.['note'];
    if (typeof note === 'number' && fields?.['outcome'] !== 'unknown') wanted.delete(note);
  }
  const lines = [...wanted].map(([note, { entry, revision }]) =>
    log.append(JSON.stringify(entry).slice(1, -1), { outcome: 'done', revision, note, recovered: true }),
  );
  await Promise.all(lines);
  await log.settled();
  return lines.length;
}
