// One host: its state, what it has and how much of that is claimed, what it holds.

import { Group, Stack, Tabs } from '@mantine/core';
import type { ReactNode } from 'react';
import { useParams, useSearchParams } from 'react-router';
import type { Host } from '../../../src/api/resources/host.ts';
import { hostStateName } from '../../../src/api/resources/host-state.ts';
import { client } from '../../data/client.ts';
import { useMay } from '../../data/may.ts';
import { useOne } from '../../data/use-list.ts';
import { type Action, Actions } from '../../parts/actions.tsx';
import { Page } from '../../parts/page.tsx';
import { Loading, StandingBanner } from '../../parts/standing.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { PlanLink } from '../plans/plan-link.tsx';
import { ResourceTabs } from '../resource/detail.tsx';
import { HostFacts } from './facts.tsx';
import { Held } from './held.tsx';
import { HostUse } from './use.tsx';

export function HostPage(): ReactNode {
  const { name = '' } = useParams();
  const { found, standing, revision, retry } = useOne('host', { name, project: undefined });
  const [search, setSearch] = useSearchParams();
  return (
    <Page title={`Host ${name}`} command={`berth host show ${name}`} actions={found && <HostActions host={found} />}>
      <StandingBanner standing={standing} retry={retry} />
      {standing.state === 'loading' ? <Loading label={`Loading host ${name}`} /> : null}
      {found === undefined && standing.state === 'live'
        ? 'There is no host of this name, or you may not see it.'
        : null}
      {found === undefined ? null : (
        <Stack data-revision={revision} data-standing={standing.state}>
          <Group>
            <StateBadge state={hostStateName(found)} />
          </Group>
          <Tabs
            value={search.get('tab') ?? 'overview'}
            keepMounted={false}
            onChange={(tab) => setSearch(tab === null || tab === 'overview' ? {} : { tab }, { replace: true })}
          >
            <Tabs.List>
              <Tabs.Tab value="overview">Overview</Tabs.Tab>
              <Tabs.Tab value="held">What it holds</Tabs.Tab>
              <Tabs.Tab value="more">YAML and events</Tabs.Tab>
            </Tabs.List>
            <Tabs.Panel value="overview" pt="sm">
              <Stack>
                <HostUse name={found.metadata.name} />
                <HostFacts host={found} />
              </Stack>
            </Tabs.Panel>
            <Tabs.Panel value="held" pt="sm">
              <Held host={found.metadata.name} />
            </Tabs.Panel>
            <Tabs.Panel value="more" pt="sm">
              <ResourceTabs kind="host" resource={found} />
            </Tabs.Panel>
          </Tabs>
        </Stack>
      )}
    </Page>
  );
}

function HostActions({ host }: { readonly host: Host }): ReactNode {
  const { name } = host.metadata;
  const mayDrain = useMay('drain', 'host');
  const mayDelete = useMay('delete', 'host');
  return (
    <Group gap="xs">
      <Pause host={host} />
      {mayDrain ? <PlanLink verb="drain" answers={{ host: name }} /> : null}
      {mayDelete ? <PlanLink verb="evacuate" answers={{ host: name }} /> : null}
    </Group>
  );
}

/** Nothing new is placed on a paused host; what runs there stays. */
function Pause({ host: { metadata, spec } }: { readonly host: Host }): ReactNode {
  const may = useMay('drain', 'host');
  if (!may) return null;
  const { name, labels, revision } = metadata;
  const action: Action = {
    name: spec.paused ? 'Resume' : 'Pause',
    command: `berth host ${spec.paused ? 'resume' : 'pause'} ${name}`,
    run: () =>
      client.replace('host', name, { metadata: { labels, revision }, spec: { ...spec, paused: !spec.paused } }),
  };
  return <Actions actions={[action]} />;
}
