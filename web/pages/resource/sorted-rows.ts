// All rows of a kind that fit a filter, in the order of a column.

import { useMemo } from 'react';
import { fits, parseWords } from '../../../src/api/lists/words.ts';
import type { Kind, ResourceByKind } from '../../../src/api/resources/index.ts';
import type { Rows } from '../../data/row-window.ts';
import { useList } from '../../data/use-list.ts';
import { type Column, type Sort, sorted } from '../../parts/table.tsx';

type Row = ResourceByKind[Kind];

export function useSortedRows(
  kind: Kind,
  { words, sort, columns }: { readonly words: string; readonly sort: Sort; readonly columns: readonly Column<Row>[] },
): Rows<Row> & { retry(): void } {
  const { items, standing, revision, retry } = useList<Kind>(kind);
  const { column, descending } = sort;
  const known = useMemo(() => {
    const parsed = parseWords(words);
    const wanted = items.filter((item) => fits(item, parsed)).sort(newestFirst);
    return sorted(wanted, columns, { column, descending });
    // oxlint-disable-next-line react/exhaustive-deps -- the columns of a kind have one order each
  }, [items, words, kind, column, descending]);
  return { length: known.length, at: (index) => known[index], look: () => undefined, known, standing, revision, retry };
}

function newestFirst(a: Row, b: Row): number {
  return b.metadata.createdAtMs - a.metadata.createdAtMs || (a.metadata.id < b.metadata.id ? 1 : -1);
}
