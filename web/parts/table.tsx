// One table for all lists: only the rows that are seen are drawn, so that 100,000 cost no more than 40.

import { memo, type ReactNode, useCallback, useEffect, useMemo, useRef } from 'react';
import classes from './table.module.css';
import { useWindow } from './use-window.ts';

export interface Column<T> {
  readonly name: string;
  /** Of a grid: `2fr`, `8rem`. */
  readonly width: string;
  readonly show: (row: T) => ReactNode;
  /** By which rows are sorted; absent: they cannot be, by this column. */
  readonly order?: (row: T) => string | number;
}

/** By the name of a column. */
export interface Sort {
  readonly column: string;
  readonly descending: boolean;
}

export interface Selection {
  /** Keys of rows. */
  readonly keys: ReadonlySet<string>;
  readonly onKeys: (keys: ReadonlySet<string>) => void;
  /** Of all rows that can be selected at once. */
  readonly all: readonly string[];
}

/** An array, or a window of a list whose rows are read when they are looked at. */
export interface RowsOf<T> {
  readonly length: number;
  at(index: number): T | undefined;
  look?(first: number, last: number): void;
}

const rowPx = 36;
const selectWidth = '1.25rem';

export function Table<T>({
  label,
  columns,
  rows,
  keyOf,
  sort,
  onSort,
  selection,
  nameOf = keyOf,
  minWidth,
}: {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: RowsOf<T>;
  readonly keyOf: (row: T) => string;
  /** Of the rows as they are; absent: the columns offer no order. */
  readonly sort?: Sort | undefined;
  readonly onSort?: (column: string) => void;
  readonly selection?: Selection | undefined;
  /** Of a row that can be selected, for people who hear the page. */
  readonly nameOf?: (row: T) => string;
  /** Below it the table scrolls: `60rem`. */
  readonly minWidth?: string;
}): ReactNode {
  const scroller = useRef<HTMLDivElement>(null);
  const { first, last } = useWindow(scroller, { count: rows.length, rowPx, more: 12 });
  const { look } = rows;
  useEffect(() => look?.(first, Math.max(first, last)), [look, first, last]);
  const indexes = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
  const widths = [...(selection ? [selectWidth] : []), ...columns.map(({ width }) => width)].join(' ');
  const grid = useMemo(
    () => ({ ...(minWidth === undefined ? {} : { minWidth }), gridTemplateColumns: widths }),
    [minWidth, widths],
  );
  const toggle = useToggle(selection);
  return (
    // A region that scrolls can be reached and moved by keys.
    <div className={classes['scroller']} ref={scroller} tabIndex={0} role="region" aria-label={label}>
      <div role="table" aria-label={label} aria-rowcount={rows.length + 1}>
        <Head columns={columns} sort={sort} onSort={onSort} selection={selection} grid={grid} />
        <div
          role="rowgroup"
          className={classes['body']}
          style={{ ...(minWidth === undefined ? {} : { minWidth }), height: rows.length * rowPx }}
        >
          {indexes.map((index) => {
            const row = rows.at(index);
            const of = row === undefined ? undefined : keyOf(row);
            return (
              <Row
                key={of ?? index}
                index={index}
                start={index * rowPx}
                columns={columns}
                row={row}
                grid={grid}
                selectKey={selection && of}
                selectName={selection && row && nameOf(row)}
                selected={of !== undefined && (selection?.keys.has(of) ?? false)}
                onToggle={toggle}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

type Grid = Readonly<Record<string, string>>;

function Head<T>({
  columns,
  sort,
  onSort,
  selection,
  grid,
}: {
  readonly columns: readonly Column<T>[];
  readonly sort: Sort | undefined;
  readonly onSort: ((column: string) => void) | undefined;
  readonly selection: Selection | undefined;
  readonly grid: Grid;
}): ReactNode {
  return (
    <div role="row" aria-rowindex={1} className={classes['head']} style={grid}>
      {selection ? (
        <div role="columnheader" aria-label="Selection">
          <SelectAll selection={selection} />
        </div>
      ) : null}
      {columns.map(({ name, order }) => (
        <div
          role="columnheader"
          key={name}
          aria-sort={sort?.column === name ? (sort.descending ? 'descending' : 'ascending') : undefined}
        >
          {order && onSort ? (
            <button type="button" className={classes['sort']} onClick={() => onSort(name)}>
              {name}
              <span aria-hidden="true">{sort?.column === name ? (sort.descending ? ' ↓' : ' ↑') : ''}</span>
            </button>
          ) : (
            name
          )}
        </div>
      ))}
    </div>
  );
}

interface RowParts<T> {
  readonly index: number;
  /** In pixels from the first row. */
  readonly start: number;
  readonly columns: readonly Column<T>[];
  /** Undefined: it is being read. */
  readonly row: T | undefined;
  readonly grid: Grid;
  /** Undefined: it cannot be selected. */
  readonly selectKey: string | undefined;
  readonly selectName: string | undefined;
  readonly selected: boolean;
  readonly onToggle: (key: string) => void;
}

/** Drawn again only when it changes: most rows stay as they are while others scroll into view. */
const Row = memo(PlainRow) as typeof PlainRow; // memo forgets the type parameter

function PlainRow<T>({
  index,
  start,
  columns,
  row,
  grid,
  selectKey,
  selectName,
  selected,
  onToggle,
}: RowParts<T>): ReactNode {
  const place = { ...grid, top: start };
  return (
    <div role="row" aria-rowindex={index + 2} className={classes['row']} style={place}>
      {selectKey === undefined ? null : (
        <div role="cell" aria-label="Selection">
          <input
            type="checkbox"
            aria-label={`Select ${selectName}`}
            checked={selected}
            onChange={() => onToggle(selectKey)}
          />
        </div>
      )}
      {columns.map(({ name, show }) => (
        <div role="cell" key={name} className={classes['cell']}>
          {row === undefined ? '…' : show(row)}
        </div>
      ))}
    </div>
  );
}

/** The same function all the time, so that rows need not be drawn again for it. */
function useToggle(selection: Selection | undefined): (key: string) => void {
  const latest = useRef(selection);
  useEffect(() => {
    latest.current = selection;
  }, [selection]);
  return useCallback((key: string) => {
    const { current } = latest;
    current?.onKeys(toggled(current.keys, key));
  }, []);
}

/** Also those that are not seen. */
function SelectAll({ selection: { keys, onKeys, all } }: { readonly selection: Selection }): ReactNode {
  const chosen = all.length > 0 && keys.size >= all.length;
  return (
    <input
      type="checkbox"
      aria-label="Select all"
      checked={chosen}
      onChange={() => onKeys(new Set(chosen ? [] : all))}
    />
  );
}

function toggled(keys: ReadonlySet<string>, key: string): ReadonlySet<string> {
  return new Set(keys.has(key) ? [...keys].filter((each) => each !== key) : [...keys, key]);
}

/** The same rows, in the order of a column. Equal ones stay as they were. */
export function sorted<T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  { column, descending }: Sort,
): readonly T[] {
  const order = columns.find(({ name }) => name === column)?.order;
  if (order === undefined) return rows;
  const sign = descending ? -1 : 1;
  return rows
    .map((row) => ({ row, by: order(row) }))
    .sort((a, b) => (a.by === b.by ? 0 : a.by < b.by ? -sign : sign))
    .map(({ row }) => row);
}
