// One table for all lists: only the rows that are seen are drawn, so that 100,000 cost no more than 40.

import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, useEffect, useRef } from 'react';
import classes from './table.module.css';

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
  /** Of a row, for people who hear the page. */
  readonly nameOf: (key: string) => string;
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
  /** Below it the table scrolls: `60rem`. */
  readonly minWidth?: string;
}): ReactNode {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    overscan: 12,
    getItemKey: (index) => {
      const row = rows.at(index);
      return row === undefined ? index : keyOf(row);
    },
  });
  const items = virtual.getVirtualItems();
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  const { look } = rows;
  useEffect(() => look?.(first, last), [look, first, last]);
  const wide = minWidth === undefined ? {} : { minWidth };
  const grid = {
    ...wide,
    gridTemplateColumns: [...(selection ? [selectWidth] : []), ...columns.map(({ width }) => width)].join(' '),
  };
  return (
    // A region that scrolls can be reached and moved by keys.
    <div className={classes['scroller']} ref={scroller} tabIndex={0} role="region" aria-label={label}>
      <div role="table" aria-label={label} aria-rowcount={rows.length + 1}>
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
        <div role="rowgroup" className={classes['body']} style={{ ...wide, height: virtual.getTotalSize() }}>
          {items.map(({ index, key, start }) => {
            const row = rows.at(index);
            const place = { ...grid, transform: `translateY(${start}px)`, height: rowPx };
            return (
              <div role="row" aria-rowindex={index + 2} className={classes['row']} style={place} key={key}>
                {selection && row !== undefined ? (
                  <div role="cell" aria-label="Selection">
                    <input
                      type="checkbox"
                      aria-label={`Select ${selection.nameOf(keyOf(row))}`}
                      checked={selection.keys.has(keyOf(row))}
                      onChange={() => selection.onKeys(toggled(selection.keys, keyOf(row)))}
                    />
                  </div>
                ) : null}
                {columns.map(({ name, show }) => (
                  <div role="cell" key={name} className={classes['cell']}>
                    {row === undefined ? '…' : show(row)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
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
