// Workloads whose copies are being created, removed or replaced, with the progress of each.

import { Group, Progress, Stack, Text as Words } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Workload } from '../../../src/api/resources/workload.ts';
import { PageLink } from '../../parts/link.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { Text } from '../../parts/text.tsx';
import { paths } from '../../paths.ts';

/** More make the page of plans long; the list of workloads has all. */
const shownMax = 20;

export function UpdatesUnderWay({ workloads }: { readonly workloads: readonly Workload[] }): ReactNode {
  return (
    <>
      {workloads.slice(0, shownMax).map((workload) => (
        <Update workload={workload} key={workload.metadata.id} />
      ))}
      {workloads.length > shownMax ? <Words size="sm">{workloads.length - shownMax} more are not shown.</Words> : null}
    </>
  );
}

function Update({ workload: { metadata, spec, status } }: { readonly workload: Workload }): ReactNode {
  const { name, project } = metadata;
  const [condition] = status.conditions;
  return (
    <Stack gap="xs" data-update={condition?.reason}>
      <Group>
        <PageLink to={paths.one('workload', metadata)}>{project === 'default' ? name : `${project}/${name}`}</PageLink>
        <StateBadge state={condition?.reason ?? ''} />
        <Words size="sm">
          {spec.paused ? 'paused; ' : ''}
          revision {status.revision}: <Text>{condition?.message ?? ''}</Text>
        </Words>
      </Group>
      <Progress
        value={
          status.wanted === 0 ? 100 : Math.min(100, (100 * Math.min(status.updated, status.available)) / status.wanted)
        }
        aria-label={`Update of workload ${name}`}
      />
    </Stack>
  );
}
