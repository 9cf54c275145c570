// Action buttons of a resource. Each names the equivalent berth command; a refusal shows the server's message.

import { Alert, Button, Code, Group, Tooltip } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { errorText } from '../data/session.ts';
import { Text, visibleText } from './text.tsx';

export interface Action {
  readonly name: string;
  /** Of berth. */
  readonly command: string;
  /** The confirmation, which names the target and the effect. Absent: no confirmation. */
  readonly question?: string;
  /** Why it cannot be done now. */
  readonly whyNot?: string | undefined;
  readonly dangerous?: boolean;
  readonly run: () => Promise<unknown>;
}

export function Actions({ actions }: { readonly actions: readonly Action[] }): ReactNode {
  const act = useMutation({ mutationFn: ({ run }: Action) => run() });
  return (
    <Group gap="xs">
      {actions.map((action) => (
        <Tooltip
          key={action.name}
          label={<Code color="transparent">{action.command}</Code>}
          events={{ hover: true, focus: true, touch: false }}
        >
          <Button
            size="xs"
            {...(action.dangerous ? { color: 'red.9' } : { variant: 'default' })}
            loading={act.isPending && act.variables.name === action.name}
            data-command={action.command}
            disabled={action.whyNot !== undefined || act.isPending}
            title={action.whyNot}
            onClick={() => {
              if (action.question === undefined || isConfirmed(action.question, action.command)) act.mutate(action);
            }}
          >
            {action.name}
          </Button>
        </Tooltip>
      ))}
      {act.error ? (
        <Alert color="red" role="alert" p="xs">
          <Text>{errorText(act.error)}</Text>
        </Alert>
      ) : null}
    </Group>
  );
}

function isConfirmed(question: string, command: string): boolean {
  return window.confirm(`${visibleText(question)}\n\n${visibleText(command)}`);
}
