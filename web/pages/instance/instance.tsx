// One instance: how it came up, what it prints, why it is where it is, and what can be done with it.

import { Group, Stack, Tabs } from '@mantine/core';
import { lazy, type ReactNode, Suspense } from 'react';
import { useNavigate, useParams, useSearchParams } from 'react-router';
import type { Instance } from '../../../src/api/resources/instance.ts';
import { useMay } from '../../data/may.ts';
import { useOne, useRows } from '../../data/use-list.ts';
import { Page } from '../../parts/page.tsx';
import { Loading, StandingBanner } from '../../parts/standing.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { paths } from '../../paths.ts';
import { commandOf } from '../resource/commands.ts';
import { ResourceTabs } from '../resource/detail.tsx';
import { Facts } from './facts.tsx';
import { Power } from './power.tsx';
import { Timeline } from './timeline.tsx';
import { Console, Exec, Screen } from './ways-in.tsx';
import { Why } from './why.tsx';

const Shares = lazy(async () => ({ default: (await import('./shares.tsx')).Shares }));
const Metrics = lazy(async () => ({ default: (await import('./metrics.tsx')).Metrics }));
const Log = lazy(async () => ({ default: (await import('./log.tsx')).Log }));

export function InstancePage(): ReactNode {
  const { name = '' } = useParams();
  const [search] = useSearchParams();
  const project = search.get('project') ?? undefined;
  const navigate = useNavigate();
  const { found, standing, revision, retry } = useOne('instance', { name, project });
  return (
    <Page
      title={`Instance ${name}`}
      command={commandOf('instance', { name, project })}
      actions={found && <Power instance={found} onDeleted={() => void navigate(paths.list('instance'))} />}
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
          <InstanceTabs instance={found} />
        </Stack>
      )}
    </Page>
  );
}

/** A way in that the user may not take is not shown. */
function InstanceTabs({ instance }: { readonly instance: Instance }): ReactNode {
  const [search, setSearch] = useSearchParams();
  const { project } = instance.metadata;
  const mayLogs = useMay('logs', 'instance', project);
  const mayConsole = useMay('console', 'instance', project);
  const mayScreen = useMay('screen', 'instance', project);
  const mayExec = useMay('exec', 'instance', project);
  const mayForward = useMay('forward', 'instance', project);
  const tabs: readonly (readonly [string, string, boolean, () => ReactNode])[] = [
    ['overview', 'Overview', true, () => <Overview instance={instance} />],
    ['log', 'Log', mayLogs, () => <Log instance={instance} key={instance.metadata.id} />],
    ['metrics', 'Metrics', true, () => <Metrics instance={instance} key={instance.metadata.id} />],
    ['console', 'Console', mayConsole, () => <Console instance={instance} />],
    ['screen', 'Screen', mayScreen, () => <Screen instance={instance} />],
    ['exec', 'Exec', mayExec, () => <Exec instance={instance} />],
    [
      'shares',
      'Shares',
      mayLogs || mayConsole || mayScreen || mayExec || mayForward,
      () => <Shares instance={instance} />,
    ],
    ['why', 'Why here', true, () => <Why instance={instance} />],
    ['more', 'YAML and events', true, () => <ResourceTabs kind="instance" resource={instance} />],
  ];
  const shown = tabs.filter(([, , may]) => may);
  const open = (value: string | null): void =>
    setSearch(
      (before) => {
        const after = new URLSearchParams(before);
        if (value === null || value === 'overview') after.delete('tab');
        else after.set('tab', value);
        return after;
      },
      { replace: true },
    );
  return (
    <Tabs value={search.get('tab') ?? 'overview'} keepMounted={false} onChange={open}>
      <Tabs.List>
        {shown.map(([value, name]) => (
          <Tabs.Tab value={value} key={value}>
            {name}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {shown.map(([value, , , show]) => (
        <Tabs.Panel value={value} pt="sm" key={value}>
          <Suspense fallback={<Loading label="Loading" />}>{show()}</Suspense>
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}

function Overview({ instance }: { readonly instance: Instance }): ReactNode {
  // Of the same image, to compare with.
  const { known } = useRows('instance', `image=${instance.spec.image ?? ''}`);
  return (
    <Stack>
      <Facts instance={instance} />
      <Timeline instance={instance} all={known} />
    </Stack>
  );
}
