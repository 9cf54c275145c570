// What the guest of an instance uses: CPU, memory, disk and network, followed while the page is open.

import { Alert, Group, Stack, Text as Words } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState } from 'react';
import type { InstanceUsage } from '../../../src/api/guests/guest-usage.ts';
import type { Instance } from '../../../src/api/resources/instance.ts';
import { client } from '../../data/client.ts';
import { errorText } from '../../data/session.ts';
import { Command } from '../../parts/command.tsx';
import { Loading } from '../../parts/standing.tsx';
import { Text } from '../../parts/text.tsx';
import { agoText, exactTime } from '../../parts/units.ts';
import { projectFlag } from '../resource/commands.ts';
import { type Point, type Series, seriesOf, valueText, withSample } from './usage-series.ts';

const everyMs = 5_000;
const widthPx = 640;
const heightPx = 70;

export function Metrics({ instance }: { readonly instance: Instance }): ReactNode {
  const { name, project, id } = instance.metadata;
  const usage = useQuery({
    queryKey: ['instance-usage', id],
    queryFn: () => client.instanceUsage(name, { project }),
    refetchInterval: everyMs,
    retry: false,
  });
  const samples = useSamples(usage.data);
  const last = samples.at(-1);
  return (
    <Stack component="section" aria-label="Metrics">
      <Group justify="space-between">
        <Words size="sm">
          {last === undefined
            ? ''
            : `Measured by host ${last.host}, ${agoText(last.measuredAtMs, usage.dataUpdatedAt)}. The charts begin when this page is opened.`}
        </Words>
        <Command words={`berth top instances${projectFlag(project)}`} />
      </Group>
      {usage.isError ? (
        <Alert color="yellow" role="status">
          <Text>{errorText(usage.error)}</Text>
        </Alert>
      ) : null}
      {last === undefined && !usage.isError ? <Loading label="Loading the measurements" /> : null}
      {seriesOf(samples).map((series) => (
        <Chart series={series} key={series.name} />
      ))}
    </Stack>
  );
}

function useSamples(latest: InstanceUsage | undefined): readonly InstanceUsage[] {
  const [samples, setSamples] = useState<readonly InstanceUsage[]>([]);
  useEffect(() => {
    if (latest !== undefined) setSamples((before) => withSample(before, latest));
  }, [latest]);
  return samples;
}

function Chart({ series: { name, unit, points } }: { readonly series: Series }): ReactNode {
  const now = points.at(-1)?.value ?? 0;
  const most = Math.max(...points.map(({ value }) => value));
  const told = `${name}: ${valueText(now, unit)} now, at most ${valueText(most, unit)}`;
  return (
    <Stack gap={2}>
      <Group gap="sm">
        <Words fw={600} size="sm">
          {name}
        </Words>
        <Words size="sm">
          {valueText(now, unit)}
          {points.length < 2 ? '' : `, at most ${valueText(most, unit)}`}
        </Words>
      </Group>
      {points.length < 2 ? null : (
        <svg
          viewBox={`0 0 ${widthPx} ${heightPx}`}
          role="img"
          aria-label={told}
          style={{ width: '100%', maxWidth: widthPx, border: '1px solid var(--mantine-color-default-border)' }}
        >
          <title>{`${exactTime(points[0]?.atMs ?? 0)} to ${exactTime(points.at(-1)?.atMs ?? 0)}`}</title>
          <polyline points={lineOf(points, most)} fill="none" stroke="#1c7ed6" strokeWidth={2} />
        </svg>
      )}
    </Stack>
  );
}

/** From left to right by time, from 0 at the bottom. */
function lineOf(points: readonly Point[], most: number): string {
  const firstMs = points[0]?.atMs ?? 0;
  const lengthMs = Math.max(1, (points.at(-1)?.atMs ?? 0) - firstMs);
  return points
    .map(({ atMs, value }) => {
      const y = heightPx - 2 - (most > 0 ? ((heightPx - 4) * value) / most : 0);
      return `${((widthPx * (atMs - firstMs)) / lengthMs).toFixed(1)},${y.toFixed(1)}`;
    })
    .join(' ');
}
