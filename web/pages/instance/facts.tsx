// The facts of an instance that people look for first.

import type { ReactNode } from 'react';
import type { Instance } from '../../../src/api/resources/instance.ts';
import { type Fact, FactTable } from '../../parts/fact-table.tsx';
import { PageLink } from '../../parts/link.tsx';
import { Text } from '../../parts/text.tsx';
import { amountText, exactTime } from '../../parts/units.ts';
import { paths } from '../../paths.ts';

export function Facts({ instance }: { readonly instance: Instance }): ReactNode {
  const { metadata, spec, status } = instance;
  const { guest, host, assigned = {} } = status;
  const amounts = Object.entries(assigned).map(([name, amount]) => amountText(name, amount));
  const facts: readonly Fact[] = [
    ['Project', metadata.project],
    ['Id', <Text key="id">{metadata.id}</Text>],
    ['Host', host === undefined ? 'none yet' : <PageLink to={paths.one('host', { name: host })}>{host}</PageLink>],
    ['Image', <Text key="image">{spec.image ?? '–'}</Text>],
    ['Holds', amounts.join(', ') || '–'],
    ['Address', <Text key="address">{guest?.address ?? '–'}</Text>],
    ['Ports', guest?.ports.map(({ hostPort, guestPort }) => `${hostPort} → ${guestPort}`).join(', ') || '–'],
    [
      'Guest',
      guest === undefined ? '–' : <Text key="guest">{[guest.state, guest.message].filter(Boolean).join(': ')}</Text>,
    ],
    ['Restarts', String(status.restartCount)],
    ['Created', exactTime(metadata.createdAtMs)],
  ];
  return <FactTable facts={facts} />;
}
