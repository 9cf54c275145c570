// Due lines: by project, the lines that have due instances, in order (order.ts). It does not know why an instance is due.

import { compareAcross, compareRanks, levelOf } from './order.ts';
import type { Shares } from './shares.ts';
import { SortedList } from './sorted-list.ts';
import { headSinceMs, type Line, type Waiting } from './waiting.ts';

/** Due keys in order. */
export interface DueLine {
  readonly size: number;
  add(key: string): void;
  take(): string | undefined;
}

export class DueLines {
  /** Number of due instances. */
  size = 0;
  /** The head of a line gains a point of priority for each of these. */
  agingMs: number;
  readonly #shares: Shares;
  readonly #byProject = new Map<string, SortedList<Line>>();

  constructor(shares: Shares, agingMs: number) {
    this.#shares = shares;
    this.agingMs = agingMs;
  }

  add(waiting: Waiting): void {
    const { line } = waiting;
    if (!line.due.add(waiting)) return;
    this.size += 1;
    if (line.due.first() === waiting) this.rank(line);
  }

  delete(waiting: Waiting): void {
    const { line } = waiting;
    const wasFirst = line.due.first() === waiting;
    if (!line.due.delete(waiting)) return;
    this.size -= 1;
    if (wasFirst) this.rank(line);
  }

  first(): Waiting | undefined {
    let first: Line | undefined;
    for (const lines of this.#byProject.values()) {
      const line = lines.first();
      if (line && (!first || this.#isBefore(line, first))) first = line;
    }
    return first?.due.first();
  }

  #isBefore(a: Line, b: Line): boolean {
    if (!a.rank || !b.rank) return false;
    return compareAcross(a.rank, this.#shares.of(a.project), b.rank, this.#shares.of(b.project)) < 0;
  }

  /** Inserts the line at its place in the order of its project, after its head or that of its due instances changed. */
  rank(line: Line): void {
    let lines = this.#byProject.get(line.project);
    if (line.rank) lines?.delete(line);
    const first = line.due.first();
    line.rank = first ? { level: this.levelOf(line), createdAtMs: first.createdAtMs, id: first.id } : null;
    if (line.rank) {
      if (!lines) this.#byProject.set(line.project, (lines = new SortedList<Line>(compareLines)));
      lines.add(line);
    } else if (lines?.size === 0) this.#byProject.delete(line.project);
  }

  /** Of the head of the line. */
  levelOf(line: Line): number {
    return levelOf(line.priority, headSinceMs(line), this.agingMs);
  }
}

function compareLines(a: Line, b: Line): number {
  return a.rank && b.rank ? compareRanks(a.rank, b.rank) : 0;
}
