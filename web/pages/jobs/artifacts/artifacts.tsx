// The files that an attempt left, one by one. They are read from the archive when this is opened.

import { Alert, Button, Table, Text as Words, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Job } from '../../../../src/api/resources/job.ts';
import { client } from '../../../data/client.ts';
import { errorText } from '../../../data/session.ts';
import { saveFile } from '../../../parts/save-file.ts';
import { Loading } from '../../../parts/standing.tsx';
import { Text } from '../../../parts/text.tsx';
import { WideTable } from '../../../parts/wide-table.tsx';
import { bytesText } from '../job-state.ts';
import { type TarFile, tarFiles } from './tar-files.ts';

export function Artifacts({ job, attempt }: { readonly job: Job; readonly attempt: number }): ReactNode {
  const { id, name, project } = job.metadata;
  const { data, error } = useQuery({
    queryKey: ['artifacts', id, attempt],
    staleTime: Number.POSITIVE_INFINITY, // an attempt that is over leaves no more
    gcTime: 0, // it may be large
    retry: false,
    queryFn: async () => tarFiles(await wholeOf(client.jobArtifacts(name, { project, attempt }))),
  });
  return (
    <>
      <Title order={2} size="h4">
        Artifacts of attempt {attempt}
      </Title>
      {error ? (
        <Alert color="yellow" role="status">
          <Text>{errorText(error)}</Text>
        </Alert>
      ) : data === undefined ? (
        <Loading label="Loading the artifacts" />
      ) : data.length === 0 ? (
        <Words>The archive has no files.</Words>
      ) : (
        <Files files={data} />
      )}
    </>
  );
}

function Files({ files }: { readonly files: readonly TarFile[] }): ReactNode {
  return (
    <WideTable label="Artifacts" columns={['File', 'Size', '']} minWidth={360}>
      {files.map(({ name, bytes }) => (
        <Table.Tr key={name}>
          <Table.Td>
            <Text>{name}</Text>
          </Table.Td>
          <Table.Td>{bytesText(bytes.length)}</Table.Td>
          <Table.Td ta="right">
            <Button
              size="compact-xs"
              variant="default"
              aria-label={`Download ${name}`}
              // As bytes of no type: a browser opens none of them as a page.
              onClick={() => saveFile([bytes.slice()], { name: lastPart(name), type: 'application/octet-stream' })}
            >
              Download
            </Button>
          </Table.Td>
        </Table.Tr>
      ))}
    </WideTable>
  );
}

function lastPart(name: string): string {
  return name.split('/').at(-1) || 'artifact';
}

async function wholeOf(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for await (const piece of pieces) parts.push(piece.slice());
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
