// A workload: the progress of its update, its copies, their endpoints, and the history of its template.

import { Alert, Group, Progress, Stack, Text as Words, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { fieldChanges, fieldText } from '../../../../src/api/field-changes.ts';
import { type Workload, workloadLabel } from '../../../../src/api/resources/workload.ts';
import type { WorkloadRevisionView } from '../../../../src/api/routes/workloads.ts';
import { client } from '../../../data/client.ts';
import { useMay } from '../../../data/may.ts';
import { errorText } from '../../../data/session.ts';
import { useRows } from '../../../data/use-list.ts';
import { Command } from '../../../parts/command.tsx';
import { FactTable } from '../../../parts/fact-table.tsx';
import { PageLink } from '../../../parts/link.tsx';
import { StateBadge } from '../../../parts/state-badge.tsx';
import { Text } from '../../../parts/text.tsx';
import { exactTime } from '../../../parts/units.ts';
import { CellRow, WideTable } from '../../../parts/wide-table.tsx';
import { paths } from '../../../paths.ts';
import { PlanLink } from '../../plans/plan-link.tsx';
import { projectFlag } from '../commands.ts';

export function WorkloadOverview({ workload }: { readonly workload: Workload }): ReactNode {
  const { spec, status } = workload;
  const { wanted, copies, updated, ready, available, revision, conditions } = status;
  return (
    <Stack>
      <Progress.Root size="lg">
        <Progress.Section
          value={wanted === 0 ? 100 : Math.min(100, (100 * Math.min(available, updated)) / wanted)}
          aria-label="Available copies of the present revision"
        />
      </Progress.Root>
      <FactTable
        facts={[
          ['Image', <Text key="image">{spec.template.spec.image ?? '–'}</Text>],
          ['Copies', `${wanted} wanted, ${copies} there, ${ready} ready, ${available} available`],
          ['Revision', `${revision}; ${updated} of ${copies} copies have it${spec.paused ? '; paused' : ''}`],
          [
            'Update',
            `${spec.strategy.type}, at most ${spec.strategy.maxSurge} more and ${spec.strategy.maxUnavailable} fewer`,
          ],
          ['State', <Text key="state">{conditions.map(({ message }) => message).join('; ') || '–'}</Text>],
        ]}
      />
      <Copies workload={workload} />
      <Endpoints workload={workload} />
      <History workload={workload} />
    </Stack>
  );
}

function Copies({ workload: { metadata } }: { readonly workload: Workload }): ReactNode {
  const words = `project=${metadata.project} ${workloadLabel}=${metadata.name}`;
  const { known: copies, length } = useRows('instance', words);
  if (copies.length === 0) return null;
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        Copies
      </Title>
      <WideTable label="Copies" columns={['Name', 'State', 'Host', 'Address']}>
        {copies.map(({ metadata: of, status }) => (
          <CellRow
            key={of.id}
            cells={[
              <PageLink key="name" to={paths.one('instance', of)}>
                {of.name}
              </PageLink>,
              <StateBadge key="state" state={status.phase} />,
              status.host === undefined ? (
                '–'
              ) : (
                <PageLink key="host" to={paths.one('host', { name: status.host })}>
                  {status.host}
                </PageLink>
              ),
              status.guest?.address ?? '–',
            ]}
          />
        ))}
      </WideTable>
      {length > copies.length ? <Words size="sm">{length - copies.length} more are not shown.</Words> : null}
    </Stack>
  );
}

function Endpoints({ workload: { metadata, status } }: { readonly workload: Workload }): ReactNode {
  const { name, project } = metadata;
  const { data, error } = useQuery({
    queryKey: ['endpoints', metadata.id, status.ready],
    queryFn: () => client.workloadEndpoints(name, { project }),
    retry: false,
  });
  if (error) return <Fault error={error} />;
  const published = (data?.items ?? []).filter(({ ports }) => ports.length > 0);
  if (published.length === 0) return null;
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Title order={2} size="h4">
          Endpoints
        </Title>
        <Command words={`berth workload endpoints ${name}${projectFlag(project)}`} />
      </Group>
      <WideTable label="Endpoints" columns={['Copy', 'Host', 'Ports']}>
        {published.map(({ instance, host, hostAddress, ports }) => (
          <CellRow
            key={instance}
            cells={[
              instance,
              hostAddress ?? host,
              ports.map(({ hostPort, guestPort, protocol }) => `${hostPort} → ${guestPort}/${protocol}`).join(', '),
            ]}
          />
        ))}
      </WideTable>
    </Stack>
  );
}

function History({ workload: { metadata, status } }: { readonly workload: Workload }): ReactNode {
  const { name, project } = metadata;
  const may = useMay('update', 'workload', project);
  const { data, error } = useQuery({
    queryKey: ['revisions', metadata.id, status.revision, status.stableRevision],
    queryFn: () => client.workloadRevisions(name, { project }),
    retry: false,
  });
  if (error) return <Fault error={error} />;
  if (data === undefined) return null;
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Title order={2} size="h4">
          History
        </Title>
        <Command words={`berth workload history ${name}${projectFlag(project)}`} />
      </Group>
      <WideTable label="History" columns={['Revision', 'Created', 'What it changed', '']}>
        {data.items.toReversed().map((each) => (
          <CellRow
            key={each.number}
            cells={[
              [each.number, each.isPresent ? '(present)' : '', each.isStable ? '(stable)' : '']
                .filter(Boolean)
                .join(' '),
              exactTime(each.createdAtMs),
              changeText(data.items, each),
              may && !each.isPresent ? (
                <PlanLink key="undo" verb="undo" answers={{ workload: name, project, to: String(each.number) }} />
              ) : null,
            ]}
          />
        ))}
      </WideTable>
    </Stack>
  );
}

/** Against the revision before it. */
function changeText(all: readonly WorkloadRevisionView[], of: WorkloadRevisionView): string {
  const before = all[all.indexOf(of) - 1];
  if (before === undefined) return `image: ${of.template.spec.image ?? '–'}`;
  return fieldChanges(before.template, of.template)
    .map(({ field, before: was, after }) => `${field}: ${fieldText(was)} → ${fieldText(after)}`)
    .join(', ');
}

function Fault({ error }: { readonly error: Error }): ReactNode {
  return (
    <Alert color="yellow" role="status">
      <Text>{errorText(error)}</Text>
    </Alert>
  );
}
