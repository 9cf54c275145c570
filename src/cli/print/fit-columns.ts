// Which columns of a table fit on a terminal, and how wide each one is. It never drops the most important ones: those
// are cut instead.

export interface TableColumn {
  /** Of its longest cell or its header. */
  readonly width: number;
  /** Below this width the column is useless and better dropped. */
  readonly least: number;
  readonly importance: 'minor' | 'plain' | 'major';
  /** Whether the column is empty in all rows. */
  readonly empty: boolean;
}

interface Fitted {
  /** In the table. */
  readonly index: number;
  readonly width: number;
}

/**
 * The columns that fit, in order. First the rightmost empty ones are dropped; then long cells are cut; where that is
 * not enough the rightmost minor column is dropped, then the rightmost plain one. Major columns always stay, cut as far
 * as necessary.
 */
export function fitColumns(columns: readonly TableColumn[], room: number, gap: number): Fitted[] {
  const shown = columns.map((column, index) => ({ ...column, index }));
  const needed = (size: 'width' | 'least'): number =>
    shown.reduce((sum, column) => sum + column[size], gap * (shown.length - 1));
  const leaveOut = (goes: (column: TableColumn) => boolean): boolean => {
    const at = shown.findLastIndex((column, place) => place > 0 && goes(column));
    return at > 0 && shown.splice(at, 1).length === 1;
  };
  while (needed('width') > room && leaveOut(({ empty }) => empty));
  while (
    needed('least') > room &&
    (leaveOut(({ importance }) => importance === 'minor') || leaveOut(({ importance }) => importance === 'plain'))
  );
  const forCells = room - gap * (shown.length - 1);
  const least = needed('least') > room ? shown.map(() => 1) : shown.map((column) => column.least);
  const widths = narrowed(
    shown.map(({ width }) => width),
    least,
    forCells,
  );
  return shown.map(({ index }, i) => ({ index, width: widths[i] ?? 0 }));
}

/** Narrows the widest first, one character at a time, and none below its least width. */
function narrowed(widths: readonly number[], least: readonly number[], room: number): number[] {
  const now = [...widths];
  let over = now.reduce((sum, width) => sum + width, 0) - room;
  while (over > 0) {
    let widest = -1;
    now.forEach((width, i) => {
      if (width > (least[i] ?? 1) && width >= (now[widest] ?? 0)) widest = i;
    });
    if (widest < 0) break;
    now[widest] = (now[widest] ?? 1) - 1;
    over--;
  }
  return now;
}
