// What the list of a kind shows, beside name and age. A kind without an entry shows its labels.

import type { ReactNode } from 'react';
import { hostStateName } from '../../../src/api/resources/host-state.ts';
import type { Kind, ResourceByKind } from '../../../src/api/resources/index.ts';
import { PageLink } from '../../parts/link.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import type { Column } from '../../parts/table.tsx';
import { Text, visibleText } from '../../parts/text.tsx';
import { paths } from '../../paths.ts';

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
  job: [{ name: 'State', width: '8rem', show: ({ status }) => <StateBadge state={status.phase} /> }],
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
