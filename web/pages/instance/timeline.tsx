// How the instance came up: each step as a bar, with its duration.

import { Box, Group, Stack, Text as Words, Title } from '@mantine/core';
import { type ReactNode, useMemo } from 'react';
import type { Instance } from '../../../src/api/resources/instance.ts';
import { useNow } from '../../parts/standing.tsx';
import { visibleText } from '../../parts/text.tsx';
import { stepsOf } from './timeline-steps.ts';
import { usualSteps } from './usual-steps.ts';

export function Timeline({
  instance,
  all,
}: {
  readonly instance: Instance;
  readonly all: readonly Instance[];
}): ReactNode {
  const steps = stepsOf(instance);
  const usual = useMemo(() => usualSteps(instance, all), [instance, all]);
  const goesOn = steps.some(({ toMs }) => toMs === undefined);
  const nowMs = useNow(goesOn ? 500 : 60_000);
  const begin = steps[0]?.fromMs ?? 0;
  const end = Math.max(begin + 1, ...steps.map(({ toMs }) => toMs ?? nowMs));
  const percent = (ms: number): number => (100 * (ms - begin)) / (end - begin);
  return (
    <Stack gap={4}>
      <Title order={2} size="h4">
        How it came up
      </Title>
      {steps.map(({ name, fromMs, toMs }) => {
        const tookMs = Math.max(0, (toMs ?? nowMs) - fromMs);
        return (
          <Group key={`${name} ${fromMs}`} gap="sm" wrap="nowrap">
            <Words size="sm" w={120} truncate>
              {visibleText(name)}
            </Words>
            <Box flex={1} pos="relative" h={14} bg="var(--mantine-color-default-hover)" aria-hidden="true">
              <Box
                pos="absolute"
                h={14}
                miw={2}
                bg={toMs === undefined ? 'blue.4' : 'blue.7'}
                left={`${percent(fromMs)}%`}
                w={`${Math.max(0, percent(toMs ?? nowMs) - percent(fromMs))}%`}
              />
            </Box>
            <Words size="sm" w={110} ta="right">
              {secondsText(tookMs)}
              {toMs === undefined ? ' …' : ''}
            </Words>
            {usual ? (
              <Words size="sm" w={120} ta="right" c="dimmed">
                {usual.stepsMs.has(name) ? `usually ${secondsText(usual.stepsMs.get(name) ?? 0)}` : ''}
              </Words>
            ) : null}
          </Group>
        );
      })}
      {usual ? (
        <Words size="sm" c="dimmed">
          Usual: the median of {usual.of} instances of this image{usual.sameHost ? ' on this host' : ' on any host'}.
        </Words>
      ) : null}
    </Stack>
  );
}

function secondsText(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`;
}
