// How long jobs of each label ran, over time: a point for each job, and a line at the median.

import { Group, Stack, Text as Words, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo } from 'react';
import { useNavigate } from 'react-router';
import { client } from '../../data/client.ts';
import { errorText } from '../../data/session.ts';
import { Loading } from '../../parts/standing.tsx';
import { Text, visibleText } from '../../parts/text.tsx';
import { exactTime, spanText } from '../../parts/units.ts';
import { paths } from '../../paths.ts';
import { durationsByLabel, type LabelDurations, type Ran } from './durations.ts';

/** The newest. */
const jobsMax = 2_000;
const everyMs = 15_000;
const widthPx = 640;
const heightPx = 90;
const radiusPx = 4;

export function DurationsChart(): ReactNode {
  const { data, error } = useQuery({
    queryKey: ['durations'],
    queryFn: () => client.list('job', { order: 'newest', offset: 0, limit: jobsMax }),
    refetchInterval: everyMs,
  });
  const labels = useMemo(() => durationsByLabel(data?.items ?? []), [data]);
  if (data === undefined) return error ? <Text>{errorText(error)}</Text> : <Loading label="Loading the jobs" />;
  return (
    <Stack component="section" aria-label="Durations" gap="sm">
      <Title order={2} size="h4">
        Durations by label
      </Title>
      {labels.length === 0 ? <Words>No job that ran has ended yet.</Words> : null}
      {labels.map((each) => (
        <Stack key={each.label} gap={2}>
          <Group gap="sm">
            <Words fw={600}>
              <Text>{each.label}</Text>
            </Words>
            <Words size="sm">
              {each.count} jobs, {each.failed} not succeeded; median {durationText(each.medianMs)}, 95 of 100 within{' '}
              {durationText(each.p95Ms)}
            </Words>
          </Group>
          <Points of={each} />
        </Stack>
      ))}
      <Words size="sm" c="dimmed">
        Of the newest {jobsMax} jobs. Time goes from left to right. ● succeeded, ▲ not succeeded; the line is the
        median.
      </Words>
    </Stack>
  );
}

function Points({ of: { label, ran, medianMs } }: { readonly of: LabelDurations }): ReactNode {
  const navigate = useNavigate();
  const firstMs = ran[0]?.endedAtMs ?? 0;
  const lengthMs = Math.max(1, (ran.at(-1)?.endedAtMs ?? 0) - firstMs);
  const longestMs = Math.max(1, ...ran.map(({ ms }) => ms));
  const x = ({ endedAtMs }: Ran): number =>
    radiusPx + (widthPx - 2 * radiusPx) * (ran.length === 1 ? 0.5 : (endedAtMs - firstMs) / lengthMs);
  const y = (ms: number): number => heightPx - radiusPx - (heightPx - 2 * radiusPx) * (ms / longestMs);
  return (
    <svg
      viewBox={`0 0 ${widthPx} ${heightPx}`}
      role="img"
      aria-label={`Durations of ${visibleText(label).slice(0, 100)}: median ${durationText(medianMs)}, longest ${durationText(longestMs)}`}
      style={{ width: '100%', maxWidth: widthPx, border: '1px solid var(--mantine-color-default-border)' }}
    >
      <line x1={0} x2={widthPx} y1={y(medianMs)} y2={y(medianMs)} stroke="currentColor" strokeDasharray="4 4" />
      {ran.map((each) => {
        const [cx, cy] = [x(each), y(each.ms)];
        const title = `${visibleText(each.name)}: ${each.phase}, ${durationText(each.ms)}, ${exactTime(each.endedAtMs)}`;
        const open = (): void => void navigate(paths.one('job', each));
        return each.phase === 'Succeeded' ? (
          <circle
            key={each.name}
            cx={cx}
            cy={cy}
            r={radiusPx}
            fill="#2f9e44"
            onClick={open}
            style={{ cursor: 'pointer' }}
          >
            <title>{title}</title>
          </circle>
        ) : (
          <path
            key={each.name}
            d={`M ${cx} ${cy - radiusPx} l ${radiusPx} ${2 * radiusPx} h ${-2 * radiusPx} z`}
            fill="#e03131"
            onClick={open}
            style={{ cursor: 'pointer' }}
          >
            <title>{title}</title>
          </path>
        );
      })}
    </svg>
  );
}

/** Short ones with their tenths. */
function durationText(ms: number): string {
  return ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : spanText(ms);
}
