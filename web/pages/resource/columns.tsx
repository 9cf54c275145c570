// What the list of a kind shows, beside name and age. A kind without an entry shows its labels.

import type { ReactNode } from 'react';
import { hostStateName } from '../../../src/api/resources/host-state.ts';
import type { Kind, ResourceByKind } from '../../../src/api/resources/index.ts';
import { PageLink } from '../../parts/link.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import type { Column } from '../../parts/table.tsx';
import { Text, visibleText } from '../../parts/text.tsx';
import { exactTime, memoryText, spanText } from '../../parts/units.ts';
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

/** Many columns show one state. */
const state = <T extends { readonly status: { readonly phase: string } }>(): Column<T> => ({
  name: 'State',
  width: '8rem',
  show: ({ status }) => <StateBadge state={status.phase} />,
  order: ({ status }) => status.phase,
});

/** A column that is text. */
const text = <T,>(name: string, width: string, of: (row: T) => string): Column<T> => ({
  name,
  width,
  show: (row) => <Text>{of(row) || '–'}</Text>,
  order: of,
});

const columnsByKind: { readonly [K in Kind]?: Columns<K> } = {
  instance: [
    state(),
    { name: 'Host', width: '1fr', show: ({ status }) => host(status.host), order: ({ status }) => status.host ?? '' },
    text('Image', '1fr', ({ spec }) => spec.image ?? ''),
    text('Address', '9rem', ({ status }) => status.guest?.address ?? ''),
  ],
  host: [
    { name: 'State', width: '8rem', show: (each) => <StateBadge state={hostStateName(each)} />, order: hostStateName },
    text('Pool', '1fr', ({ spec }) => spec.pool ?? 'default'),
    text('Address', '9rem', ({ status }) => status.address ?? ''),
  ],
  workload: [
    text('Image', '1fr', ({ spec }) => spec.template.spec.image ?? ''),
    {
      name: 'Available',
      width: '8rem',
      show: ({ status }) => `${status.available} of ${status.wanted}`,
      order: ({ status }) => status.available - status.wanted,
    },
    {
      name: 'Revision',
      width: '9rem',
      show: ({ spec, status }) =>
        `${status.revision}${spec.paused ? ', paused' : status.updated < status.copies ? ', updating' : ''}`,
      order: ({ status }) => status.revision,
    },
  ],
  jobTemplate: [
    text('Schedule', '1fr', ({ spec }) => spec.schedule?.cron ?? ''),
    text('Last', '1fr', ({ status }) => status.last?.job ?? ''),
    { name: 'Jobs', width: '8rem', show: ({ status }) => status.jobs, order: ({ status }) => status.jobs },
  ],
  warmPool: [
    text('Image', '1fr', ({ spec }) => spec.template.spec.image ?? ''),
    {
      name: 'Ready',
      width: '8rem',
      show: ({ status }) => `${status.ready} of ${status.wanted}`,
      order: ({ status }) => status.ready - status.wanted,
    },
    {
      name: 'Claims',
      width: '8rem',
      show: ({ status }) => status.hits + status.misses,
      order: ({ status }) => status.hits + status.misses,
    },
  ],
  job: [
    state(),
    text('Runs on', '1fr', labelOf),
    { name: 'Attempt', width: '5rem', show: ({ status }) => status.attempt, order: ({ status }) => status.attempt },
    {
      name: 'Ran for',
      width: '6rem',
      show: ranText,
      order: (job) => (job.status.endedAtMs === undefined ? -1 : (ranMs(job, job.status.endedAtMs) ?? -1)),
    },
  ],
  task: [
    state(),
    { name: 'Host', width: '1fr', show: ({ status }) => host(status.host), order: ({ status }) => status.host ?? '' },
  ],
  spare: [
    state(),
    { name: 'Host', width: '1fr', show: ({ status }) => host(status.host), order: ({ status }) => status.host ?? '' },
    text('Address', '9rem', ({ status }) => status.address ?? ''),
  ],
  volume: [
    state(),
    { name: 'Size', width: '6rem', show: ({ spec }) => `${spec.sizeGiB} GiB`, order: ({ spec }) => spec.sizeGiB },
    { name: 'Host', width: '1fr', show: ({ status }) => host(status.host), order: ({ status }) => status.host ?? '' },
    text('Attached to', '1fr', ({ status }) => status.attachedTo?.instance ?? ''),
  ],
  image: [text('Source', '2fr', ({ spec }) => String(spec.source ?? ''))],
  size: [
    { name: 'CPUs', width: '5rem', show: ({ spec }) => spec.cpus, order: ({ spec }) => spec.cpus },
    {
      name: 'Memory',
      width: '7rem',
      show: ({ spec }) => memoryText(spec.memoryMiB),
      order: ({ spec }) => spec.memoryMiB,
    },
  ],
  token: [
    text('Opens', '2fr', ({ spec: { role, project, share } }) =>
      share
        ? `${share.verbs.join(', ')} of instance ${share.instance}`
        : role
          ? `${role} in ${project ?? 'the fleet'}`
          : '',
    ),
    text('Of', '1fr', ({ spec: { user, owner } }) => user?.name ?? user?.subject ?? owner?.name ?? ''),
    {
      name: 'Expires',
      width: '11rem',
      show: ({ spec }) => (spec.expiresAtMs === undefined ? 'never' : exactTime(spec.expiresAtMs)),
      order: ({ spec }) => spec.expiresAtMs ?? Number.POSITIVE_INFINITY,
    },
  ],
  binding: [
    text('Role', '1fr', ({ spec }) => `${spec.role} in ${spec.project ?? 'the fleet'}`),
    text('Subjects', '2fr', ({ spec }) => spec.subjects.map(({ kind, name }) => `${kind} ${name}`).join(', ')),
  ],
  secret: [text('Values', '2fr', ({ status }) => Object.keys(status.keys).join(', '))],
  webhook: [
    text('URL', '2fr', ({ spec }) => spec.url),
    text('State', '8rem', ({ spec, status }) => (status.disabled ? 'disabled' : spec.paused ? 'paused' : 'on')),
  ],
  inventory: [
    {
      name: 'State',
      width: '8rem',
      show: ({ status }) => <StateBadge state={status.state} />,
      order: ({ status }) => status.state,
    },
    { name: 'Hosts', width: '6rem', show: ({ status }) => status.hosts, order: ({ status }) => status.hosts },
    text('Message', '2fr', ({ status }) => status.message),
  ],
  event: [
    text('Reason', '10rem', ({ spec }) => spec.reason),
    text('About', '1fr', ({ spec: { subject } }) => `${subject.kind} ${subject.name}`),
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
