// What waits for room, in order, and why.

import { Text as Words } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { QueueItem } from '../../src/api/queue.ts';
import { client } from '../data/client.ts';
import { errorText } from '../data/session.ts';
import { PageLink } from '../parts/link.tsx';
import { Page } from '../parts/page.tsx';
import { Loading, StandingBanner } from '../parts/standing.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Text, visibleText } from '../parts/text.tsx';
import { spanText } from '../parts/units.ts';
import { paths } from '../paths.ts';

const everyMs = 3_000;

const starts: Column<QueueItem> = {
  name: 'Starts',
  width: '8rem',
  show: ({ expectedStartMs }) =>
    expectedStartMs === undefined ? '' : `in about ${spanText(Math.max(0, expectedStartMs - Date.now()))}`,
};

/** The start is known of instances of jobs only: without any, its column would be empty. */
const columnsOf = (items: readonly QueueItem[]): readonly Column<QueueItem>[] => [
  { name: '#', width: '3rem', show: ({ position }) => position },
  {
    name: 'Instance',
    width: '1.5fr',
    show: ({ instance, project }) => (
      <PageLink to={paths.one('instance', { name: instance, project })}>
        <bdi>{visibleText(instance)}</bdi>
      </PageLink>
    ),
  },
  { name: 'Project', width: '1fr', show: ({ project }) => project },
  { name: 'Priority', width: '4.5rem', show: ({ priority }) => priority },
  { name: 'Waits', width: '4.5rem', show: ({ waitingMs }) => spanText(waitingMs) },
  ...(items.some(({ expectedStartMs }) => expectedStartMs !== undefined) ? [starts] : []),
  { name: 'Reason', width: '8rem', show: ({ reason }) => <Text>{reason}</Text> },
  { name: 'Why', width: '4fr', show: ({ message }) => <Text>{message}</Text> },
];

export function PendingPage(): ReactNode {
  const queue = useQuery({
    queryKey: ['queue'],
    queryFn: () => client.queue({ limit: 1_000 }),
    refetchInterval: everyMs,
  });
  return (
    <Page title="Pending" command="berth queue">
      {queue.isError ? (
        <StandingBanner
          standing={{ state: 'offline', sinceMs: queue.dataUpdatedAt || Date.now(), why: errorText(queue.error) }}
          retry={() => void queue.refetch()}
        />
      ) : null}
      {queue.data === undefined ? (
        queue.isError ? null : (
          <Loading label="Loading the queue" />
        )
      ) : queue.data.items.length === 0 ? (
        <Words>Nothing waits for room.</Words>
      ) : (
        <>
          <Words role="status">
            {queue.data.waiting === 1 ? '1 instance waits' : `${queue.data.waiting} instances wait`} for room.
          </Words>
          <Table
            label="Pending instances"
            columns={columnsOf(queue.data.items)}
            rows={queue.data.items}
            keyOf={({ project, instance }) => `${project}/${instance}`}
          />
        </>
      )}
    </Page>
  );
}
