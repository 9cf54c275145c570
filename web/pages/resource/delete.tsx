// Deletes a resource, after a question that names it. Shown to those who may.

import { Alert, Button, Group } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { type AnyResource, type Kind, resourceDefinitions } from '../../../src/api/resources/index.ts';
import { client } from '../../data/client.ts';
import { useMay } from '../../data/may.ts';
import { errorText } from '../../data/session.ts';
import { Text, visibleText } from '../../parts/text.tsx';

export function Delete({
  kind,
  resource: { metadata },
  onDone,
}: {
  readonly kind: Kind;
  readonly resource: AnyResource;
  readonly onDone: () => void;
}): ReactNode {
  const { name, project } = metadata;
  const may = useMay('delete', kind, project || undefined);
  const verbs: readonly string[] = resourceDefinitions[kind].verbs;
  const remove = useMutation({
    mutationFn: () => client.delete(kind, name, project ? { project } : {}),
    onSuccess: onDone,
  });
  if (!may || !verbs.includes('delete')) return null;
  const leaves = metadata.deletionRequestedAtMs !== undefined;
  return (
    <Group gap="xs">
      <Button
        size="xs"
        color="red.9"
        loading={remove.isPending}
        disabled={leaves}
        title={leaves ? 'Its deletion was requested already' : undefined}
        onClick={() => {
          if (window.confirm(`Delete ${kind} ${visibleText(name)}${kind === 'instance' ? ' and its disk' : ''}?`))
            remove.mutate();
        }}
      >
        Delete
      </Button>
      {remove.error ? (
        <Alert color="red" role="alert" p="xs">
          <Text>{errorText(remove.error)}</Text>
        </Alert>
      ) : null}
    </Group>
  );
}
