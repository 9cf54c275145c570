// Who waits for room, in order of arrival. Those who ask alike stand behind one another: where the first does not fit, no other does.

import type { Asked } from './trace-requests.ts';

interface Line {
  readonly asked: Asked;
  readonly rows: number[];
  /** How many of `rows` have been served. */
  served: number;
}

export class WaitingLine {
  readonly #lines = new Map<Asked, Line>();
  size = 0;

  has(asked: Asked): boolean {
    return this.#lines.has(asked);
  }

  push(asked: Asked, row: number): void {
    let line = this.#lines.get(asked);
    if (!line) this.#lines.set(asked, (line = { asked, rows: [], served: 0 }));
    line.rows.push(row);
    this.size += 1;
  }

  /** Of all but `refused`, who came first. Rows are numbered as they came. */
  first(refused: ReadonlySet<Asked>): { readonly row: number; readonly asked: Asked } | undefined {
    let best: { row: number; asked: Asked } | undefined;
    for (const { asked, rows, served } of this.#lines.values()) {
      const row = rows[served] ?? Number.POSITIVE_INFINITY;
      if (!refused.has(asked) && (!best || row < best.row)) best = { row, asked };
    }
    return best;
  }

  /** The first of those who ask so has been served. */
  shift(asked: Asked): void {
    const line = this.#lines.get(asked);
    if (!line) return;
    line.served += 1;
    this.size -= 1;
    if (line.served === line.rows.length) this.#lines.delete(asked);
  }
}
