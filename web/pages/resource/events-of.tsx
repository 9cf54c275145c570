// What happened to one resource, the newest first.

import { Text as Words } from '@mantine/core';
import type { ReactNode } from 'react';
import { useRows } from '../../data/use-list.ts';
import { Loading, useNow } from '../../parts/standing.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { agoText, exactTime } from '../../parts/units.ts';
import { CellRow, WideTable } from '../../parts/wide-table.tsx';

const shownMax = 100;

export function EventsOf({ subject }: { readonly subject: string }): ReactNode {
  const { known, standing } = useRows('event', `subject=${subject}`);
  const nowMs = useNow(5_000);
  if (standing.state === 'loading') return <Loading label="Loading the events" />;
  const own = known.slice(0, shownMax);
  if (own.length === 0) return <Words>No event is kept.</Words>;
  return (
    <WideTable label="Events" columns={['When', 'Type', 'Reason', 'Message']}>
      {own.map(({ metadata: { id, createdAtMs }, spec }) => (
        <CellRow
          key={id}
          cells={[
            <span key="when" title={exactTime(createdAtMs)}>
              {agoText(createdAtMs, nowMs)}
            </span>,
            <StateBadge key="type" state={spec.type} />,
            spec.reason,
            spec.message,
          ]}
        />
      ))}
    </WideTable>
  );
}
