// What a host has, by resource class, and how much of it is claimed.

import { Box, Group, Stack, Text as Words, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { client } from '../../data/client.ts';
import { errorText } from '../../data/session.ts';
import { Loading } from '../../parts/standing.tsx';
import { Text, visibleText } from '../../parts/text.tsx';
import { amountText, classText, shareText } from '../../parts/units.ts';

const everyMs = 5_000;

export function HostUse({ name }: { readonly name: string }): ReactNode {
  const usage = useQuery({
    queryKey: ['usage', name],
    queryFn: () => client.usage({ host: name }),
    refetchInterval: everyMs,
  });
  if (usage.data === undefined)
    return usage.isError ? <Text>{errorText(usage.error)}</Text> : <Loading label="Loading what is claimed" />;
  const classes = Object.entries(usage.data.items[0]?.classes ?? {});
  return (
    <Stack gap={6}>
      <Title order={2} size="h4">
        Claimed
      </Title>
      {classes.length === 0 ? <Words>The host has reported nothing yet.</Words> : null}
      {classes.map(([resource, { used, capacity }]) => {
        const share = capacity > 0 ? Math.min(1, used / capacity) : 0;
        return (
          <Group key={resource} gap="sm" wrap="nowrap">
            <Words size="sm" w={130} truncate>
              {visibleText(classText(resource))}
            </Words>
            <Box flex={1} h={14} bg="var(--mantine-color-default-hover)" aria-hidden="true">
              <Box h={14} bg="blue.7" w={`${100 * share}%`} />
            </Box>
            <Words size="sm" w={210} ta="right">
              {shareText(used, capacity, (value) => amountText(resource, value))}
            </Words>
          </Group>
        );
      })}
    </Stack>
  );
}
