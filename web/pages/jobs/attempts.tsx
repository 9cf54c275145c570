// The attempts of a job: where each ran, how it ended, what it left.

import { Anchor, Group, Table, Text as Words, Title } from '@mantine/core';
import { lazy, type ReactNode, Suspense } from 'react';
import { useSearchParams } from 'react-router';
import type { Job } from '../../../src/api/resources/job.ts';
import { PageLink } from '../../parts/link.tsx';
import { Loading, useNow } from '../../parts/standing.tsx';
import { Text } from '../../parts/text.tsx';
import { exactTime, spanText } from '../../parts/units.ts';
import { WideTable } from '../../parts/wide-table.tsx';
import { paths } from '../../paths.ts';
import { attemptText, bytesText } from './job-state.ts';

const Artifacts = lazy(async () => ({ default: (await import('./artifacts/artifacts.tsx')).Artifacts }));

/** What a page reads at once; a larger archive is downloaded whole. */
const artifactsBytesMax = 64 * 1024 * 1024;

export function Attempts({ job, mayLogs }: { readonly job: Job; readonly mayLogs: boolean }): ReactNode {
  const nowMs = useNow(1_000);
  const [search] = useSearchParams();
  const files = Number(search.get('files') ?? 0);
  const { metadata, status } = job;
  const { project } = metadata;
  if (status.attempts.length === 0) return <Words>There is no attempt yet.</Words>;
  const logOf = (number: number): string => `${paths.one('job', metadata)}&tab=log&attempt=${number}`;
  return (
    <>
      <Title order={2} size="h4">
        Attempts
      </Title>
      <WideTable
        label="Attempts"
        columns={['#', 'Instance', 'Host', 'Outcome', 'Began', 'Took', 'Log', 'Artifacts']}
        minWidth={760}
      >
        {status.attempts.map((attempt) => {
          const { number, instance, host, createdAtMs, startedAtMs, endedAtMs, logBytes, artifactsBytes } = attempt;
          return (
            <Table.Tr key={number}>
              <Table.Td>{number}</Table.Td>
              <Table.Td>
                <PageLink to={paths.one('instance', { name: instance, project })}>{instance}</PageLink>
              </Table.Td>
              <Table.Td>
                {host === undefined ? '–' : <PageLink to={paths.one('host', { name: host })}>{host}</PageLink>}
              </Table.Td>
              <Table.Td>
                <Text>{attemptText(attempt)}</Text>
              </Table.Td>
              <Table.Td title={exactTime(createdAtMs)}>{exactTime(startedAtMs ?? createdAtMs)}</Table.Td>
              <Table.Td>{spanText((endedAtMs ?? nowMs) - (startedAtMs ?? createdAtMs))}</Table.Td>
              <Table.Td>
                {mayLogs ? <PageLink to={logOf(number)}>{logText(logBytes)}</PageLink> : logText(logBytes)}
              </Table.Td>
              <Table.Td>
                {artifactsBytes === undefined || artifactsBytes === 0 ? (
                  '–'
                ) : mayLogs ? (
                  <Group gap="xs" wrap="nowrap">
                    <Anchor
                      href={`/v1/jobs/${encodeURIComponent(metadata.name)}/artifacts?project=${encodeURIComponent(project)}&attempt=${number}`}
                      download={`${metadata.name}-${number}.tar`}
                    >
                      {bytesText(artifactsBytes)} as tar
                    </Anchor>
                    {artifactsBytes > artifactsBytesMax ? null : (
                      <PageLink to={`${paths.one('job', metadata)}&files=${number}`}>files</PageLink>
                    )}
                  </Group>
                ) : (
                  bytesText(artifactsBytes)
                )}
              </Table.Td>
            </Table.Tr>
          );
        })}
      </WideTable>
      {mayLogs && files > 0 ? (
        <Suspense fallback={<Loading label="Loading the artifacts" />}>
          <Artifacts job={job} attempt={files} />
        </Suspense>
      ) : null}
    </>
  );
}

function logText(bytes: number | undefined): string {
  return bytes === undefined ? 'log' : `log, ${bytesText(bytes)}`;
}
