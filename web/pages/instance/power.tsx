// Power and deletion of an instance. What the state and the rights permit is offered; what the server refuses is shown in its words.

import { Alert, Button, Group } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Instance } from '../../../src/api/resources/instance.ts';
import { client } from '../../data/client.ts';
import { useMay } from '../../data/may.ts';
import { errorText } from '../../data/session.ts';
import { Text } from '../../parts/text.tsx';
import { Delete } from '../resource/delete.tsx';
import { type PowerAction, powerActions } from './power-actions.ts';

export function Power({
  instance,
  onDeleted,
}: {
  readonly instance: Instance;
  readonly onDeleted: () => void;
}): ReactNode {
  const { metadata, spec } = instance;
  const act = useMutation({
    mutationFn: ({ change }: PowerAction) =>
      client.replace('instance', metadata.name, {
        metadata: { project: metadata.project, labels: metadata.labels, revision: metadata.revision },
        spec: { ...spec, ...change },
      }),
  });
  const may = useMay('power', 'instance', metadata.project);
  const leaves = metadata.deletionRequestedAtMs !== undefined;
  return (
    <Group gap="xs">
      {may
        ? powerActions(instance).map((action) => (
            <Button
              key={action.name}
              size="xs"
              variant="default"
              loading={act.isPending && act.variables.name === action.name}
              disabled={leaves || act.isPending}
              title={leaves ? 'Its deletion was requested' : undefined}
              onClick={() => act.mutate(action)}
            >
              {action.name}
            </Button>
          ))
        : null}
      <Delete kind="instance" resource={instance} onDone={onDeleted} />
      {act.error ? (
        <Alert color="red" role="alert" p="xs">
          <Text>{errorText(act.error)}</Text>
        </Alert>
      ) : null}
    </Group>
  );
}
