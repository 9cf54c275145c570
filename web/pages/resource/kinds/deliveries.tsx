// The deliveries of a webhook: the result of each event.

import { Alert, Group, Stack, Text as Words } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Webhook } from '../../../../src/api/resources/webhook.ts';
import { client } from '../../../data/client.ts';
import { useMay } from '../../../data/may.ts';
import { errorText } from '../../../data/session.ts';
import { type Action, Actions } from '../../../parts/actions.tsx';
import { Command } from '../../../parts/command.tsx';
import { StateBadge } from '../../../parts/state-badge.tsx';
import { Text } from '../../../parts/text.tsx';
import { exactTime } from '../../../parts/units.ts';
import { CellRow, WideTable } from '../../../parts/wide-table.tsx';
import { projectFlag } from '../commands.ts';

const everyMs = 5_000;

export function Deliveries({ webhook: { metadata, status } }: { readonly webhook: Webhook }): ReactNode {
  const { name, project } = metadata;
  const may = useMay('update', 'webhook', project);
  const { data, error, refetch } = useQuery({
    queryKey: ['deliveries', metadata.id],
    queryFn: () => client.webhookDeliveries(name, { project }),
    refetchInterval: everyMs,
    retry: false,
  });
  return (
    <Stack>
      {status.disabled ? (
        <Alert color="red" role="alert" title={`Disabled since ${exactTime(status.disabled.atMs)}`}>
          <Text>{status.disabled.reason}</Text>
        </Alert>
      ) : null}
      {error ? (
        <Alert color="yellow" role="status">
          <Text>{errorText(error)}</Text>
        </Alert>
      ) : null}
      <Group justify="flex-end">
        <Command words={`berth webhook deliveries ${name}${projectFlag(project)}`} />
      </Group>
      {data?.items.length === 0 ? <Words>Nothing was sent yet.</Words> : null}
      {data && data.items.length > 0 ? (
        <WideTable
          label="Deliveries"
          columns={['Event', 'Type', 'State', 'Attempts', 'Last', 'Answer', '']}
          minWidth={820}
        >
          {data.items.map(({ event, type, state, attempts, lastAtMs, status: code, error: why }) => (
            <CellRow
              key={event}
              cells={[
                event,
                type,
                <StateBadge key="state" state={state} />,
                attempts,
                lastAtMs === undefined ? '–' : exactTime(lastAtMs),
                [code, why].filter((part) => part !== undefined).join(' ') || '–',
                may ? <Again key="again" webhook={metadata} event={event} onDone={refetch} /> : null,
              ]}
            />
          ))}
        </WideTable>
      ) : null}
    </Stack>
  );
}

function Again({
  webhook: { name, project },
  event,
  onDone,
}: {
  readonly webhook: Webhook['metadata'];
  readonly event: string;
  readonly onDone: () => Promise<unknown>;
}): ReactNode {
  const again: Action = {
    name: 'Send again',
    command: `berth webhook resend ${name} ${event}${projectFlag(project)}`,
    run: async () => {
      await client.resendDelivery(name, event, { project });
      await onDone();
    },
  };
  return <Actions actions={[again]} />;
}
