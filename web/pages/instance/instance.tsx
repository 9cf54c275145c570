// One instance: how it came up, what it prints, why it is where it is, and what can be done with it.

import { Alert, Button, Group, Stack, Tabs } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { lazy, type ReactNode, Suspense } from 'react';
import { useParams, useSearchParams } from 'react-router';
import type { Instance } from '../../../src/api/resources/instance.ts';
import { client } from '../../data/client.ts';
import { errorText } from '../../data/session.ts';
import { useList } from '../../data/use-list.ts';
import { Page } from '../../parts/page.tsx';
import { Loading, StandingBanner } from '../../parts/standing.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { commandOf } from '../resource/commands.ts';
import { isNamed, ResourceTabs } from '../resource/detail.tsx';
import { Facts } from './facts.tsx';
import { Timeline } from './timeline.tsx';
import { Why } from './why.tsx';

const Log = lazy(async () => ({ default: (await import('./log.tsx')).Log }));

export function InstancePage(): ReactNode {
  const { name = '' } = useParams();
  const [search, setSearch] = useSearchParams();
  const project = search.get('project') ?? undefined;
  const { items, standing, revision, retry } = useList('instance');
  const found = items.find(({ metadata }) => isNamed(metadata, { name, project }));
  const tab = search.get('tab') ?? 'overview';
  return (
    <Page
      title={`Instance ${name}`}
      command={commandOf('instance', { name, project })}
      actions={found && <Power instance={found} />}
    >
      <StandingBanner standing={standing} retry={retry} />
      {standing.state === 'loading' ? <Loading label={`Loading instance ${name}`} /> : null}
      {found === undefined && standing.state === 'live'
        ? 'There is no instance of this name, or you may not see it.'
        : null}
      {found === undefined ? null : (
        <Stack data-revision={revision} data-standing={standing.state}>
          <Group>
            <StateBadge state={found.status.phase} />
          </Group>
          <Tabs
            value={tab}
            keepMounted={false}
            onChange={(value) =>
              setSearch(
                { ...(project ? { project } : {}), ...(value && value !== 'overview' ? { tab: value } : {}) },
                { replace: true },
              )
            }
          >
            <Tabs.List>
              <Tabs.Tab value="overview">Overview</Tabs.Tab>
              <Tabs.Tab value="log">Log</Tabs.Tab>
              <Tabs.Tab value="why">Why here</Tabs.Tab>
              <Tabs.Tab value="more">YAML and events</Tabs.Tab>
            </Tabs.List>
            <Tabs.Panel value="overview" pt="sm">
              <Stack>
                <Facts instance={found} />
                <Timeline instance={found} />
              </Stack>
            </Tabs.Panel>
            <Tabs.Panel value="log" pt="sm">
              <Suspense fallback={<Loading label="Loading the log" />}>
                <Log instance={found} key={found.metadata.id} />
              </Suspense>
            </Tabs.Panel>
            <Tabs.Panel value="why" pt="sm">
              <Why instance={found} />
            </Tabs.Panel>
            <Tabs.Panel value="more" pt="sm">
              <ResourceTabs resource={found} />
            </Tabs.Panel>
          </Tabs>
        </Stack>
      )}
    </Page>
  );
}

/** What the state permits is offered; what the server refuses is told in its words. */
function Power({ instance }: { readonly instance: Instance }): ReactNode {
  const { metadata, spec } = instance;
  const act = useMutation({
    mutationFn: (powerState: 'running' | 'stopped') =>
      client.replace('instance', metadata.name, {
        metadata: { project: metadata.project, labels: metadata.labels, revision: metadata.revision },
        spec: { ...spec, powerState },
      }),
  });
  const remove = useMutation({
    mutationFn: () => client.delete('instance', metadata.name, { project: metadata.project }),
  });
  const fault = act.error ?? remove.error;
  const leaves = metadata.deletionRequestedAtMs !== undefined;
  return (
    <Group gap="xs">
      {spec.powerState !== 'stopped' ? (
        <Button
          size="xs"
          variant="default"
          loading={act.isPending}
          disabled={leaves}
          onClick={() => act.mutate('stopped')}
        >
          Stop
        </Button>
      ) : (
        <Button size="xs" loading={act.isPending} disabled={leaves} onClick={() => act.mutate('running')}>
          Start
        </Button>
      )}
      <Button
        size="xs"
        color="red.9"
        loading={remove.isPending}
        disabled={leaves}
        onClick={() => {
          if (window.confirm(`Delete instance ${metadata.name} and its disk?`)) remove.mutate();
        }}
      >
        Delete
      </Button>
      {fault ? (
        <Alert color="red" role="alert" p="xs">
          {errorText(fault)}
        </Alert>
      ) : null}
    </Group>
  );
}
