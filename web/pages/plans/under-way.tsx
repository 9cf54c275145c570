// Running drains and updates of workloads, with the progress of each.

import { Alert, Group, Progress, Stack, Table, Text as Words, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { HostDrain } from '../../../src/api/plans/host-plan.ts';
import { client } from '../../data/client.ts';
import { useMay } from '../../data/may.ts';
import { errorText } from '../../data/session.ts';
import { useRows } from '../../data/use-list.ts';
import { Actions } from '../../parts/actions.tsx';
import { PageLink } from '../../parts/link.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Text } from '../../parts/text.tsx';
import { exactTime } from '../../parts/units.ts';
import { WideTable } from '../../parts/wide-table.tsx';
import { paths } from '../../paths.ts';
import { guestRow } from './shown-plan.ts';
import { UpdatesUnderWay } from './updates-under-way.tsx';

const everyMs = 2_000;

export function UnderWay(): ReactNode {
  const { known: drained } = useRows('host', 'state=Draining');
  const { known: updated } = useRows('workload', 'state=Updating');
  const { known: scaled } = useRows('workload', 'state=Progressing');
  if (drained.length + updated.length + scaled.length === 0) return null;
  return (
    <Stack component="section" aria-label="Under way">
      <Title order={2} size="h4">
        Under way
      </Title>
      {drained.map(({ metadata }) => (
        <Drain host={metadata.name} key={metadata.id} />
      ))}
      <UpdatesUnderWay workloads={[...updated, ...scaled]} />
    </Stack>
  );
}

function Drain({ host }: { readonly host: string }): ReactNode {
  const may = useMay('drain', 'host');
  const drain = useQuery({
    queryKey: ['drain', host],
    queryFn: () => client.showDrain(host),
    refetchInterval: everyMs,
    retry: false,
  });
  if (drain.data === undefined)
    return drain.error ? (
      <Alert color="red" role="alert">
        <Text>{errorText(drain.error)}</Text>
      </Alert>
    ) : null;
  const { phase, guests, deadlineAtMs } = drain.data;
  const done = guests.filter(({ progress }) => progress === 'done').length;
  return (
    <Stack gap="xs" data-drain={phase}>
      <Group>
        <PageLink to={paths.one('host', { name: host })}>{host}</PageLink>
        <StateBadge state={phase} />
        <Words size="sm">
          {done} of {guests.length} done
          {deadlineAtMs === undefined || phase !== 'Draining' ? '' : `; until ${exactTime(deadlineAtMs)}`}
        </Words>
        {may ? (
          <Actions
            actions={[
              {
                name: phase === 'Draining' ? 'End the drain' : 'Open the host',
                command: `berth host drain ${host} --cancel`,
                question: `End the drain of host ${host} and open the host again? Instances that have left do not return.`,
                run: () => client.cancelDrain(host),
              },
            ]}
          />
        ) : null}
      </Group>
      <Progress value={guests.length === 0 ? 100 : (100 * done) / guests.length} aria-label={`Drain of host ${host}`} />
      {guests.length === 0 ? null : <DrainRows drain={drain.data} />}
    </Stack>
  );
}

function DrainRows({ drain: { host, guests } }: { readonly drain: HostDrain }): ReactNode {
  return (
    <WideTable label={`What leaves host ${host}`} minWidth={480}>
      {guests.slice(0, 100).map((guest) => {
        const { name, action, why } = guestRow(guest, host);
        return (
          <Table.Tr key={guest.id}>
            <Table.Td>
              <Text>{name}</Text>
            </Table.Td>
            <Table.Td>{action}</Table.Td>
            <Table.Td>{guest.progress ?? ''}</Table.Td>
            <Table.Td>
              <Text>{guest.message ?? why}</Text>
            </Table.Td>
          </Table.Tr>
        );
      })}
    </WideTable>
  );
}
