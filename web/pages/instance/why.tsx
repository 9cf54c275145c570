// Why it is where it is, or has no host: host by host, and what would change that.

import { Alert, Stack, Table, Text as Words } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Instance } from '../../../src/api/resources/instance.ts';
import { client } from '../../data/client.ts';
import { errorText } from '../../data/session.ts';
import { Loading } from '../../parts/standing.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Text } from '../../parts/text.tsx';
import { Nearest } from './nearest.tsx';
import { Refusals } from './refusals.tsx';

export function Why({ instance }: { readonly instance: Instance }): ReactNode {
  const { name, project, revision } = instance.metadata;
  const why = useQuery({
    queryKey: ['explain', project, name, revision],
    queryFn: () => client.explain(name, { project, limit: 200 }),
    placeholderData: (before) => before,
  });
  if (why.isError)
    return (
      <Alert color="red" role="alert" title="It cannot be explained">
        {errorText(why.error)}
      </Alert>
    );
  if (why.data === undefined) return <Loading label="Loading the explanation" />;
  const { summary, hosts, nearest = [], reasons, counts, queue } = why.data;
  return (
    <Stack>
      <Words>
        <Text>{summary}</Text>
      </Words>
      {queue?.position === undefined ? null : (
        <Words>
          Position {queue.position} of {queue.waiting} in the queue.
        </Words>
      )}
      <Nearest instance={instance} changes={nearest} />
      <Refusals reasons={reasons} hosts={hosts} total={counts.hosts} />
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Host</Table.Th>
            <Table.Th miw={120}>Verdict</Table.Th>
            <Table.Th>Score</Table.Th>
            <Table.Th>Reasons</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {hosts.map(({ host, current, fits, score, refusals }) => (
            <Table.Tr key={host}>
              <Table.Td>
                {host}
                {current ? ' (its own)' : ''}
              </Table.Td>
              <Table.Td>
                <StateBadge state={fits ? 'Available' : 'Refused'} />
              </Table.Td>
              <Table.Td>{score === undefined ? '–' : score.toFixed(1)}</Table.Td>
              <Table.Td>
                <Text>{refusals.map(({ message }) => message).join('; ')}</Text>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Stack>
  );
}
