// Which rows of a list are selected. A row that goes is not selected any more.

import { useMemo, useState } from 'react';
import type { AnyResource, Kind } from '../../../../src/api/resources/index.ts';
import { useMay } from '../../../data/may.ts';
import type { Selection } from '../../../parts/table.tsx';
import { type BulkAction, bulkActions } from './bulk-actions.ts';

export interface Bulk {
  readonly actions: readonly BulkAction[];
  /** Those that are there and selected. */
  readonly chosen: readonly AnyResource[];
  /** Absent: nothing can be done with rows. */
  readonly selection: Selection | undefined;
}

/** `rows`: those that have been read. */
export function useBulk(kind: Kind, rows: readonly AnyResource[]): Bulk {
  const [keys, setKeys] = useState<ReadonlySet<string>>(new Set());
  const may = {
    delete: useMay('delete', kind),
    power: useMay('power', kind),
    update: useMay('update', kind),
  };
  const actions = bulkActions(kind).filter(({ verb }) => Object.entries(may).some(([of, yes]) => of === verb && yes));
  const chosen = useMemo(
    () => (keys.size === 0 ? [] : rows.filter(({ metadata }) => keys.has(metadata.id))),
    [keys, rows],
  );
  const selection: Selection = {
    keys: new Set(chosen.map(({ metadata }) => metadata.id)),
    onKeys: setKeys,
    all: rows.map(({ metadata }) => metadata.id),
  };
  return { actions, chosen, selection: actions.length > 0 ? selection : undefined };
}
