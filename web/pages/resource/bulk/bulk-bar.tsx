// The actions on the selected rows, and the result of each.

import { Alert, Button, Code, Group, List, Stack, Text as Words, Tooltip } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import type { Kind } from '../../../../src/api/resources/index.ts';
import { Text, visibleText } from '../../../parts/text.tsx';
import { type BulkAction, bulkCommand } from './bulk-actions.ts';
import { type BulkResult, runBulk } from './run-bulk.ts';
import type { Bulk } from './use-bulk.ts';

interface Progress extends BulkResult {
  readonly name: string;
  readonly of: number;
}

export function BulkBar({ bulk, kind }: { readonly bulk: Bulk; readonly kind: Kind }): ReactNode {
  const [progress, setProgress] = useState<Progress>();
  const { actions, chosen, selection } = bulk;
  const isRunning = progress !== undefined && progress.done + progress.failures.length < progress.of;
  if (selection === undefined || (chosen.length === 0 && progress === undefined)) return null;
  const run = ({ name, words, takes, act }: BulkAction): void => {
    const taken = chosen.filter(takes);
    const command = bulkCommand(words, taken);
    if (
      !window.confirm(
        `${name} ${taken.length} of kind ${kind}?\n\n${visibleText(command).replaceAll('⟨U+000A⟩', '\n')}`,
      )
    )
      return;
    const tell = (result: BulkResult): void => setProgress({ ...result, name, of: taken.length });
    tell({ done: 0, failures: [] });
    void runBulk(taken, { nameOf: ({ metadata }) => metadata.name, act }, tell);
  };
  return (
    <Stack gap="xs" mb="xs">
      <Group gap="xs">
        <Words size="sm" role="status">
          {chosen.length} selected
        </Words>
        {actions.map((action) => {
          const taken = chosen.filter(action.takes);
          return (
            <Tooltip
              key={action.name}
              label={<Code color="transparent">{bulkCommand(action.words, taken)}</Code>}
              events={{ hover: true, focus: true, touch: false }}
            >
              <Button
                size="xs"
                {...(action.dangerous ? { color: 'red.9' } : { variant: 'default' })}
                disabled={taken.length === 0 || isRunning}
                title={taken.length === 0 ? 'It can be done with none of these now' : undefined}
                onClick={() => run(action)}
              >
                {action.name} {taken.length}
              </Button>
            </Tooltip>
          );
        })}
        <Button size="xs" variant="subtle" onClick={() => (selection.onKeys(new Set()), setProgress(undefined))}>
          Select none
        </Button>
      </Group>
      {progress === undefined ? null : (
        <Alert color={progress.failures.length > 0 ? 'red' : 'green'} role="status">
          {progress.name}: {progress.done} of {progress.of} done
          {progress.failures.length === 0 ? null : (
            <List size="sm">
              {progress.failures.slice(0, 100).map(({ name, message }) => (
                <List.Item key={name}>
                  <Text>{`${name}: ${message}`}</Text>
                </List.Item>
              ))}
            </List>
          )}
        </Alert>
      )}
    </Stack>
  );
}
