// What more would fit, and whether the fleet survives the loss of a host.

import { Badge, Card, Group, SimpleGrid, Text as Words } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Capacity } from '../../../src/api/capacity.ts';
import { client } from '../../data/client.ts';
import { useMay } from '../../data/may.ts';
import { polled } from '../../data/polling.ts';
import { visibleText } from '../../parts/text.tsx';
import { fitsText, lossText } from './room-text.ts';

/** It is a question about every host and every size. */
const everyMs = 30_000;
/** A change of hosts or sizes is shown sooner. */
const maxAgeMs = 60_000;

const capacity = polled(everyMs, () => client.capacity({ losses: 1, maxAgeMs }));

export function Room(): ReactNode {
  const may = useMay('read-placement', 'instance');
  const { data } = useQuery({
    enabled: may,
    queryKey: ['capacity'],
    ...capacity,
    staleTime: everyMs,
  });
  if (data === undefined) return null; // it is no part of what is looked for first
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <Card withBorder padding="sm">
        <Words size="sm" c="dimmed">
          Room for
        </Words>
        <Group gap={4}>
          {data.sizes.length === 0 ? <Words size="sm">No size is defined yet.</Words> : null}
          {data.sizes.map((size) => (
            <Badge key={size.size ?? ''} variant="default" tt="none">
              {visibleText(fitsText(size))}
            </Badge>
          ))}
        </Group>
      </Card>
      <Survives losses={data.losses} />
    </SimpleGrid>
  );
}

function Survives({ losses: [loss] }: { readonly losses: Capacity['losses'] }): ReactNode {
  if (loss === undefined) return null;
  return (
    <Card withBorder padding="sm">
      <Words size="sm" c="dimmed">
        Loss of one host
      </Words>
      <Words size="sm">{visibleText(lossText(loss))}</Words>
    </Card>
  );
}
