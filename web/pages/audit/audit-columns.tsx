// The columns of the audit log.

import type { ReactNode } from 'react';
import type { AuditRecord } from '../../../src/api/audit/audit-log.ts';
import { PageLink } from '../../parts/link.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import type { Column } from '../../parts/table.tsx';
import { Text, visibleText } from '../../parts/text.tsx';
import { exactTime } from '../../parts/units.ts';
import { kindNamed, paths } from '../../paths.ts';
import { objectText } from './audit-filter.ts';

export const auditColumns: readonly Column<AuditRecord>[] = [
  {
    name: 'Time',
    width: '13rem',
    show: ({ time }) => <span title={visibleText(time)}>{exactTime(Date.parse(time))}</span>,
  },
  {
    name: 'Who',
    width: '1.5fr',
    show: ({ who, user }) => <span title={visibleText(who ?? '')}>{<Text>{user ?? who ?? '–'}</Text>}</span>,
  },
  { name: 'From', width: '7rem', show: ({ address }) => <Text>{address ?? '–'}</Text> },
  { name: 'Face', width: '4rem', show: ({ face }) => face },
  { name: 'Verb', width: '1fr', show: ({ verb }) => <Text>{verb}</Text> },
  { name: 'Object', width: '2fr', show: (record) => <ObjectLink record={record} /> },
  {
    name: 'Outcome',
    width: '6rem',
    show: ({ outcome }) => <StateBadge state={outcome} />,
  },
  {
    name: 'Reason',
    width: '1fr',
    show: ({ reason, count, recovered }) => (
      <Text>
        {[reason, count === undefined ? '' : `${count} times`, recovered ? 'recovered' : ''].filter(Boolean).join(', ')}
      </Text>
    ),
  },
  { name: 'Request', width: '1fr', show: ({ request }) => <Text>{request ?? '–'}</Text> },
];

/** To the object, when there can be a page of it. */
function ObjectLink({ record }: { readonly record: AuditRecord }): ReactNode {
  const { kind = '', object, project = '' } = record;
  const known = kindNamed(kind);
  const shown = <bdi>{visibleText(objectText(record)).slice(0, 256)}</bdi>;
  if (known === undefined || object === undefined || object.startsWith('(')) return shown;
  return <PageLink to={paths.one(known, { name: object, project })}>{shown}</PageLink>;
}
