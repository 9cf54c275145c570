// The instances on a host, as they come and go.

import { Text as Words } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Instance } from '../../../src/api/resources/instance.ts';
import { useRows } from '../../data/use-list.ts';
import { PageLink } from '../../parts/link.tsx';
import { Loading, StandingBanner } from '../../parts/standing.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { Text, visibleText } from '../../parts/text.tsx';
import { memoryText } from '../../parts/units.ts';
import { paths } from '../../paths.ts';

const columns: readonly Column<Instance>[] = [
  {
    name: 'Instance',
    width: '2fr',
    show: ({ metadata }) => (
      <PageLink to={paths.one('instance', metadata)}>
        <bdi>{visibleText(metadata.name)}</bdi>
      </PageLink>
    ),
  },
  { name: 'Project', width: '1fr', show: ({ metadata }) => metadata.project },
  { name: 'State', width: '8rem', show: ({ status }) => <StateBadge state={status.phase} /> },
  { name: 'CPUs', width: '4rem', show: ({ status }) => status.assigned?.['VCPU'] ?? '–' },
  { name: 'Memory', width: '6rem', show: ({ status }) => memoryOf(status) },
  { name: 'Image', width: '1fr', show: ({ spec }) => <Text>{spec.image ?? '–'}</Text> },
];

export function Held({ host }: { readonly host: string }): ReactNode {
  const own = useRows('instance', `host=${host}`);
  const { standing, retry } = own;
  if (standing.state === 'loading') return <Loading label="Loading the instances" />;
  return (
    <>
      <StandingBanner standing={standing} retry={retry} />
      <Words size="sm" role="status" mb="xs">
        {own.length} instances
      </Words>
      {own.length === 0 ? null : (
        <Table label="Instances on this host" columns={columns} rows={own} keyOf={({ metadata }) => metadata.id} />
      )}
    </>
  );
}

function memoryOf({ assigned }: Instance['status']): string {
  const amount = assigned?.['MEMORY_MB'];
  return amount === undefined ? '–' : memoryText(amount);
}
