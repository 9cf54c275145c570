// The nearest changes that would make an instance fit, each with its effect: from a dry run when the change is in the instance itself, otherwise
// as the server computed it.

import { Button, Group, List, Text as Words, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import type { NearestChange } from '../../../src/api/explanation.ts';
import type { Instance } from '../../../src/api/resources/instance.ts';
import { client } from '../../data/client.ts';
import { errorText } from '../../data/session.ts';
import { Text } from '../../parts/text.tsx';
import { specAsking } from './spec-asking.ts';

export function Nearest({
  instance,
  changes,
}: {
  readonly instance: Instance;
  readonly changes: readonly NearestChange[];
}): ReactNode {
  if (changes.length === 0) return null;
  return (
    <>
      <Title order={2} size="h4">
        What would make it fit
      </Title>
      <List>
        {changes.map((change) => (
          <List.Item key={change.message}>
            <One instance={instance} change={change} />
          </List.Item>
        ))}
      </List>
    </>
  );
}

function One({ instance, change }: { readonly instance: Instance; readonly change: NearestChange }): ReactNode {
  const [tried, setTried] = useState(false);
  const spec = change.ask && specAsking(instance.spec, change.ask);
  const { project, labels } = instance.metadata;
  const plan = useMutation({
    mutationFn: async (asked: Instance['spec']) => client.plan({ metadata: { project, labels }, spec: asked }),
  });
  const result = spec === undefined ? trialText(change) : plan.data && planText(plan.data.explanation);
  return (
    <>
      <Group gap="xs">
        <Text>{change.message}</Text>
        <Button
          size="compact-xs"
          variant="default"
          loading={plan.isPending}
          aria-label={`What if: ${change.message}`}
          onClick={() => {
            setTried(true);
            if (spec !== undefined) plan.mutate(spec);
          }}
        >
          What if
        </Button>
      </Group>
      <Words size="sm" role="status">
        {plan.error ? <Text>{errorText(plan.error)}</Text> : tried && result ? <Text>{result}</Text> : null}
      </Words>
    </>
  );
}

function planText({
  summary,
  counts,
}: {
  readonly summary: string;
  readonly counts: { readonly fit: number };
}): string {
  return `Then ${counts.fit} hosts would fit. ${summary}`;
}

function trialText({ hosts, hostCount }: NearestChange): string {
  const named = hosts.length > 0 ? `: ${hosts.join(', ')}${hostCount > hosts.length ? ', ...' : ''}` : '';
  return `Dry run by the server: ${hostCount} hosts would fit${named}`;
}
