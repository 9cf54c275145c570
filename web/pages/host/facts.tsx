// The facts of a host that people look for first.

import type { ReactNode } from 'react';
import type { Host } from '../../../src/api/resources/host.ts';
import { type Fact, FactTable } from '../../parts/fact-table.tsx';
import { useNow } from '../../parts/standing.tsx';
import { Text } from '../../parts/text.tsx';
import { agoText, exactTime } from '../../parts/units.ts';

export function HostFacts({ host: { metadata, spec, status } }: { readonly host: Host }): ReactNode {
  const nowMs = useNow(10_000);
  const since = status.state?.sinceMs;
  const drivers = status.drivers.map(({ name, available, accelerator, version, reason }) =>
    available ? [name, version, accelerator].filter(Boolean).join(' ') : `${name}: ${reason ?? 'not available'}`,
  );
  const facts: readonly Fact[] = [
    ['Pool', spec.pool ?? 'default'],
    ['State since', since === undefined ? '–' : <span title={exactTime(since)}>{agoText(since, nowMs)}</span>],
    ['Address', <Text key="address">{status.address ?? '–'}</Text>],
    ['Architecture', status.architecture ?? '–'],
    ['Drivers', <Text key="drivers">{drivers.join('; ') || '–'}</Text>],
    ['Labels', <Text key="labels">{pairsOf(metadata.labels)}</Text>],
    [
      'Taints',
      <Text key="taints">{(spec.taints ?? []).map(({ key, effect }) => `${key}: ${effect}`).join(', ') || '–'}</Text>,
    ],
    ['Traits', <Text key="traits">{(status.traits ?? []).join(', ') || '–'}</Text>],
    [
      'Images',
      <Text key="images">
        {status.images.map(({ name, problem }) => (problem ? `${name} (${problem})` : name)).join(', ') || '–'}
      </Text>,
    ],
    ['Agent', <Text key="agent">{status.agentVersion ?? '–'}</Text>],
    ...status.conditions.map(
      ({ type, status: holds, message }): Fact => [
        type,
        <Text key={type}>{`${holds}${message ? `: ${message}` : ''}`}</Text>,
      ],
    ),
  ];
  return <FactTable facts={facts} />;
}

function pairsOf(labels: Readonly<Record<string, string>>): string {
  return (
    Object.entries(labels)
      .map(([key, value]) => `${key}=${value}`)
      .join(', ') || '–'
  );
}
