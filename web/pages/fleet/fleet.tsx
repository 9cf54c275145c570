// The fleet at a glance: every host as a cell, how much is held, what more would fit.

import { Badge, Card, Group, SegmentedControl, Select, SimpleGrid, Stack, Text as Words } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo } from 'react';
import { useNavigate, useSearchParams } from 'react-router';
import type { Host } from '../../../src/api/resources/host.ts';
import { hostStateName } from '../../../src/api/resources/host-state.ts';
import type { HostUsage, UsagePage } from '../../../src/api/usage.ts';
import { client } from '../../data/client.ts';
import { polled } from '../../data/polling.ts';
import { useList } from '../../data/use-list.ts';
import { Page } from '../../parts/page.tsx';
import { Loading, StandingBanner } from '../../parts/standing.tsx';
import { visibleText } from '../../parts/text.tsx';
import { memoryText, shareText } from '../../parts/units.ts';
import { paths } from '../../paths.ts';
import { lookOfShare, lookOfState } from './colours.ts';
import { HostMap, type MappedHost } from './host-map.tsx';
import { Room } from './room.tsx';

const groupings = ['pool', 'zone', 'rack', 'none'] as const;
const usageEveryMs = 5_000;

export function FleetPage(): ReactNode {
  const { items: hosts, standing, revision, retry } = useList('host');
  const [search, setSearch] = useSearchParams();
  const navigate = useNavigate();
  const grouping = groupings.find((each) => each === search.get('by')) ?? 'pool';
  const colour = search.get('colour') === 'claims' ? 'claims' : 'state';
  const usage = useQuery({ queryKey: ['usage'], enabled: standing.state === 'live', ...wholeUsage });
  const set = (name: string, value: string): void =>
    setSearch((before) => new URLSearchParams([...[...before].filter(([key]) => key !== name), [name, value]]), {
      replace: true,
    });
  const mapped = useMemo(
    () => hosts.map((host) => mappedHost(host, usage.data?.get(host.metadata.name), { grouping, colour })),
    [hosts, usage.data, grouping, colour],
  );
  return (
    <Page title="Fleet" command="berth host ls">
      <StandingBanner standing={standing} retry={retry} />
      {standing.state === 'loading' ? (
        <Loading label="Loading the hosts" />
      ) : (
        <Stack data-revision={revision} data-standing={standing.state}>
          <Totals hosts={hosts} usage={usage.data} />
          <Room />
          <Group>
            <Select
              label="Group by"
              size="xs"
              data={[...groupings]}
              value={grouping}
              allowDeselect={false}
              onChange={(value) => set('by', value ?? 'pool')}
            />
            <div>
              <Words size="sm" fw={500} id="colour-by">
                Colour by
              </Words>
              <SegmentedControl
                size="xs"
                aria-labelledby="colour-by"
                data={['state', 'claims']}
                value={colour}
                onChange={(value) => set('colour', value)}
              />
            </div>
          </Group>
          {hosts.length === 0 ? (
            <Words>There is no host yet. “berth agent join” adds one; docs/hosts.md tells how.</Words>
          ) : (
            <div style={standing.state === 'offline' ? { filter: 'grayscale(1)' } : undefined}>
              <HostMap hosts={mapped} onOpen={(name) => void navigate(paths.one('host', { name }))} />
            </div>
          )}
        </Stack>
      )}
    </Page>
  );
}

const wholeUsage = polled(usageEveryMs, readUsage);

async function readUsage(): Promise<ReadonlyMap<string, HostUsage>> {
  const found = new Map<string, HostUsage>();
  let next: string | undefined;
  do {
    const page: UsagePage = await client.json('/v1/usage', { query: { limit: 1_000, continue: next } });
    for (const item of page.items) found.set(item.host, item);
    next = page.continue;
  } while (next !== undefined);
  return found;
}

function mappedHost(
  host: Host,
  usage: HostUsage | undefined,
  { grouping, colour }: { readonly grouping: (typeof groupings)[number]; readonly colour: string },
): MappedHost {
  const { name, labels } = host.metadata;
  const pool = host.spec.pool ?? 'default';
  const group = grouping === 'none' ? 'all' : grouping === 'pool' ? pool : (labels[grouping] ?? `no ${grouping}`);
  const vcpu = usage?.classes['VCPU'];
  const share = usage && scarcest(usage);
  const held = vcpu === undefined ? '' : `, ${shareText(vcpu.used, vcpu.capacity, (value) => `${value} VCPU`)}`;
  return {
    name,
    group: visibleText(group),
    look: colour === 'claims' ? lookOfShare(share) : lookOfState(host),
    told: `${name}: ${hostStateName(host)}${held}, ${usage?.consumers ?? 0} consumers`,
  };
}

/** The class of which the largest share is held. */
function scarcest({ classes }: HostUsage): number {
  return Math.max(0, ...Object.values(classes).map(({ used, capacity }) => (capacity > 0 ? used / capacity : 0)));
}

function Totals({
  hosts,
  usage,
}: {
  readonly hosts: readonly Host[];
  readonly usage: ReadonlyMap<string, HostUsage> | undefined;
}): ReactNode {
  const states = Map.groupBy(hosts, (host) => hostStateName(host));
  const sum = (name: string, field: 'used' | 'capacity'): number =>
    [...(usage?.values() ?? [])].reduce((total, { classes }) => total + (classes[name]?.[field] ?? 0), 0);
  const text = (name: string, amount: (value: number) => string): string =>
    shareText(sum(name, 'used'), sum(name, 'capacity'), amount);
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }}>
      <Card withBorder padding="sm">
        <Words size="sm" c="dimmed">
          Hosts
        </Words>
        <Words fw={600}>{hosts.length}</Words>
        <Group gap={4}>
          {[...states].map(([state, members]) => (
            <Badge key={state} variant="default" tt="none">
              {members.length} {state}
            </Badge>
          ))}
        </Group>
      </Card>
      <Total name="CPUs claimed" value={text('VCPU', (value) => `${value} VCPU`)} />
      <Total name="Memory claimed" value={text('MEMORY_MB', memoryText)} />
      <Total name="Disk claimed" value={text('DISK_GB', (value) => `${value} GB`)} />
    </SimpleGrid>
  );
}

function Total({ name, value }: { readonly name: string; readonly value: string }): ReactNode {
  return (
    <Card withBorder padding="sm">
      <Words size="sm" c="dimmed">
        {name}
      </Words>
      <Words fw={600}>{value}</Words>
    </Card>
  );
}
