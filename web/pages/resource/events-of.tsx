// What happened to one resource, the newest first.

import { Table, Text as Words } from '@mantine/core';
import type { ReactNode } from 'react';
import { useRows } from '../../data/use-list.ts';
import { Loading, useNow } from '../../parts/standing.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Text } from '../../parts/text.tsx';
import { agoText, exactTime } from '../../parts/units.ts';

const shownMax = 100;

export function EventsOf({ subject }: { readonly subject: string }): ReactNode {
  const { known, standing } = useRows('event', `subject=${subject}`);
  const nowMs = useNow(5_000);
  if (standing.state === 'loading') return <Loading label="Loading the events" />;
  const own = known.slice(0, shownMax);
  if (own.length === 0) return <Words>No event is kept.</Words>;
  return (
    <Table>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>When</Table.Th>
          <Table.Th>Type</Table.Th>
          <Table.Th>Reason</Table.Th>
          <Table.Th>Message</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {own.map(({ metadata, spec }) => (
          <Table.Tr key={metadata.id}>
            <Table.Td title={exactTime(metadata.createdAtMs)}>{agoText(metadata.createdAtMs, nowMs)}</Table.Td>
            <Table.Td>
              <StateBadge state={spec.type} />
            </Table.Td>
            <Table.Td>
              <Text>{spec.reason}</Text>
            </Table.Td>
            <Table.Td>
              <Text>{spec.message}</Text>
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
