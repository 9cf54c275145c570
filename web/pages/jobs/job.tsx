// One job: its state, the logs and artifacts of its attempts, and its actions.

import { Group, Stack, Tabs } from '@mantine/core';
import { lazy, type ReactNode, Suspense } from 'react';
import { useNavigate, useParams, useSearchParams } from 'react-router';
import type { Job } from '../../../src/api/resources/job.ts';
import { client } from '../../data/client.ts';
import { useMay } from '../../data/may.ts';
import { useOne } from '../../data/use-list.ts';
import { type Action, Actions } from '../../parts/actions.tsx';
import { Page } from '../../parts/page.tsx';
import { Loading, StandingBanner } from '../../parts/standing.tsx';
import { StateBadge } from '../../parts/state-badge.tsx';
import { paths } from '../../paths.ts';
import { projectFlag } from '../resource/commands.ts';
import { Delete } from '../resource/delete.tsx';
import { ResourceTabs } from '../resource/detail.tsx';
import { Attempts } from './attempts.tsx';
import { JobFacts } from './job-facts.tsx';
import { hasEnded } from './job-state.ts';

const JobLog = lazy(async () => ({ default: (await import('./job-log.tsx')).JobLog }));

export function JobPage(): ReactNode {
  const { name = '' } = useParams();
  const [search] = useSearchParams();
  const project = search.get('project') ?? undefined;
  const { found, standing, revision, retry } = useOne('job', { name, project });
  return (
    <Page
      title={`Job ${name}`}
      command={`berth job show ${name}${projectFlag(project)}`}
      actions={found && <JobActions job={found} />}
    >
      <StandingBanner standing={standing} retry={retry} />
      {standing.state === 'loading' ? <Loading label={`Loading job ${name}`} /> : null}
      {found === undefined && standing.state === 'live' ? 'There is no job of this name, or you may not see it.' : null}
      {found === undefined ? null : (
        <Stack data-revision={revision} data-standing={standing.state}>
          <Group>
            <StateBadge state={found.status.phase} />
          </Group>
          <JobTabs job={found} key={found.metadata.id} />
        </Stack>
      )}
    </Page>
  );
}

function JobActions({ job }: { readonly job: Job }): ReactNode {
  const navigate = useNavigate();
  const { name, project: of } = job.metadata;
  const mayCancel = useMay('update', 'job', of);
  const mayRetry = useMay('create', 'job', of);
  const ended = hasEnded(job);
  const cancel: Action = {
    name: 'Cancel',
    command: `berth job cancel ${name}${projectFlag(of)}`,
    question: `Cancel job ${name}? Its program is ended.`,
    whyNot: job.status.cancel ? 'It is being cancelled' : undefined,
    run: () => client.cancelJob(name, { project: of }),
  };
  const again: Action = {
    name: 'Retry',
    command: `berth job retry ${name}${projectFlag(of)}`,
    run: async () => {
      const { metadata } = await client.retryJob(name, { project: of });
      void navigate(paths.one('job', metadata));
    },
  };
  return (
    <Group gap="xs">
      <Actions actions={[...(mayCancel && !ended ? [cancel] : []), ...(mayRetry && ended ? [again] : [])]} />
      <Delete kind="job" resource={job} onDone={() => void navigate(paths.list('job'))} />
    </Group>
  );
}

function JobTabs({ job }: { readonly job: Job }): ReactNode {
  const [search, setSearch] = useSearchParams();
  const mayLogs = useMay('logs', 'job', job.metadata.project);
  const shown = search.get('tab') ?? 'overview';
  const open = (tab: string | null): void =>
    setSearch(
      (before) => {
        const after = new URLSearchParams(before);
        if (tab === null || tab === 'overview') after.delete('tab');
        else after.set('tab', tab);
        return after;
      },
      { replace: true },
    );
  return (
    <Tabs value={shown} keepMounted={false} onChange={open}>
      <Tabs.List>
        <Tabs.Tab value="overview">Overview</Tabs.Tab>
        {mayLogs ? <Tabs.Tab value="log">Log</Tabs.Tab> : null}
        <Tabs.Tab value="more">YAML and events</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="overview" pt="sm">
        <Stack>
          <JobFacts job={job} />
          <Attempts job={job} mayLogs={mayLogs} />
        </Stack>
      </Tabs.Panel>
      {mayLogs ? (
        <Tabs.Panel value="log" pt="sm">
          <Suspense fallback={<Loading label="Loading the log" />}>
            <JobLog job={job} />
          </Suspense>
        </Tabs.Panel>
      ) : null}
      <Tabs.Panel value="more" pt="sm">
        <ResourceTabs kind="job" resource={job} />
      </Tabs.Panel>
    </Tabs>
  );
}
