// One table for all lists: only the rows that are seen are drawn, so that 100,000 cost no more than 40.

import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, useEffect, useRef } from 'react';
import classes from './table.module.css';

export interface Column<T> {
  readonly name: string;
  /** Of a grid: `2fr`, `8rem`. */
  readonly width: string;
  readonly show: (row: T) => ReactNode;
}

/** An array, or a window of a list whose rows are read when they are looked at. */
export interface RowsOf<T> {
  readonly length: number;
  at(index: number): T | undefined;
  look?(first: number, last: number): void;
}

const rowPx = 36;

export function Table<T>({
  label,
  columns,
  rows,
  keyOf,
}: {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: RowsOf<T>;
  readonly keyOf: (row: T) => string;
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
  const grid = { gridTemplateColumns: columns.map(({ width }) => width).join(' ') };
  return (
    // A region that scrolls can be reached and moved by keys.
    <div className={classes['scroller']} ref={scroller} tabIndex={0} role="region" aria-label={label}>
      <div role="table" aria-label={label} aria-rowcount={rows.length + 1}>
        <div role="row" aria-rowindex={1} className={classes['head']} style={grid}>
          {columns.map(({ name }) => (
            <div role="columnheader" key={name}>
              {name}
            </div>
          ))}
        </div>
        <div role="rowgroup" className={classes['body']} style={{ height: virtual.getTotalSize() }}>
          {items.map(({ index, key, start }) => {
            const row = rows.at(index);
            const place = { ...grid, transform: `translateY(${start}px)`, height: rowPx };
            return (
              <div role="row" aria-rowindex={index + 2} className={classes['row']} style={place} key={key}>
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
