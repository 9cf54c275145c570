// What the list of a kind shows, beside name and age. A kind without an entry shows its labels.

import type { ReactNode } from 'react';
import { hostStateName } from '../../../src/api/resources/host-state.ts';
import type { Kind, ResourceByKind } from '../../../src/api/resources/index.ts';
import { PageLink } from '../../parts/link.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import type { Column } from '../../parts/table.tsx';
import { Text, visibleText } from '../../parts/text.tsx';
import { spanText } from '../../parts/units.ts';
import { paths } from '../../paths.ts';
import { labelOf, ranMs } from '../jobs/job-state.ts';

/** Of a job that has ended: one that runs is not drawn again each second for it. */
function ranText(job: ResourceByKind['job']): string {
  const { endedAtMs } = job.status;
  return endedAtMs === undefined ? '–' : spanText(ranMs(job, endedAtMs) ?? 0);
}

type Columns<K extends Kind> = readonly Column<ResourceByKind[K]>[];

const host = (name: string | undefined): ReactNode =>
  name === undefined ? '–' : <PageLink to={paths.one('host', { name })}>{name}</PageLink>;

const columnsByKind: { readonly [K in Kind]?: Columns<K> } = {
  instance: [
    { name: 'State', width: '8rem', show: ({ status }) => <StateBadge state={status.phase} /> },
    { name: 'Host', width: '1fr', show: ({ status }) => host(status.host) },
    { name: 'Image', width: '1fr', show: ({ spec }) => <Text>{spec.image ?? ''}</Text> },
    { name: 'Address', width: '9rem', show: ({ status }) => status.guest?.address ?? '–' },
  ],
  host: [
    { name: 'State', width: '8rem', show: (each) => <StateBadge state={hostStateName(each)} /> },
    { name: 'Pool', width: '1fr', show: ({ spec }) => spec.pool ?? 'default' },
    { name: 'Address', width: '9rem', show: ({ status }) => <Text>{status.address ?? '–'}</Text> },
  ],
  job: [
    { name: 'State', width: '8rem', show: ({ status }) => <StateBadge state={status.phase} /> },
    { name: 'Runs on', width: '1fr', show: (job) => <Text>{labelOf(job)}</Text> },
    { name: 'Attempt', width: '5rem', show: ({ status }) => status.attempt },
    { name: 'Ran for', width: '6rem', show: (job) => ranText(job) },
  ],
  image: [{ name: 'Source', width: '2fr', show: ({ spec }) => <Text>{String(spec.source ?? '–')}</Text> }],
  event: [
    { name: 'Reason', width: '10rem', show: ({ spec }) => <Text>{spec.reason}</Text> },
    { name: 'About', width: '1fr', show: ({ spec: { subject } }) => <Text>{`${subject.kind} ${subject.name}`}</Text> },
    {
      name: 'Message',
      width: '3fr',
      show: ({ spec }) => <span title={visibleText(spec.message)}>{visibleText(spec.message).slice(0, 300)}</span>,
    },
  ],
};

export function columnsOf<K extends Kind>(kind: K): Columns<K> {
  return columnsByKind[kind] ?? [];
}
