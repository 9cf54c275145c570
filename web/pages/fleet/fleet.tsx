// The fleet at a glance: every host as a cell, how much is held, what more would fit.

import { Badge, Card, Group, SegmentedControl, Select, SimpleGrid, Stack, Text as Words } from '@mantine/core';
import { type ReactNode, useMemo } from 'react';
import { useNavigate, useSearchParams } from 'react-router';
import { type MapRow, useFleetMap } from '../../data/fleet-map.ts';
import { Page } from '../../parts/page.tsx';
import { Loading, StandingBanner } from '../../parts/standing.tsx';
import { visibleText } from '../../parts/text.tsx';
import { memoryText, shareText } from '../../parts/units.ts';
import { paths } from '../../paths.ts';
import { lookOfShare, lookOfState } from './colours.ts';
import { HostMap, type MappedHost } from './host-map.tsx';
import { Legend, type LegendEntry, sharesLegend, statesLegend } from './legend.tsx';
import { Room } from './room.tsx';

const groupings = ['pool', 'zone', 'rack', 'none'] as const;
const colours = ['state', 'claims', 'use'] as const;
type Colour = (typeof colours)[number];

export function FleetPage(): ReactNode {
  const { rows: hosts, standing, revision, retry } = useFleetMap();
  const [search, setSearch] = useSearchParams();
  const navigate = useNavigate();
  const grouping = groupings.find((each) => each === search.get('by')) ?? 'pool';
  const colour = colours.find((each) => each === search.get('colour')) ?? 'state';
  const set = (name: string, value: string): void =>
    setSearch((before) => new URLSearchParams([...[...before].filter(([key]) => key !== name), [name, value]]), {
      replace: true,
    });
  const mapped = useMemo(() => hosts.map((host) => mappedHost(host, { grouping, colour })), [hosts, grouping, colour]);
  return (
    <Page title="Fleet" command="berth host ls">
      <StandingBanner standing={standing} retry={retry} />
      {standing.state === 'loading' ? (
        <Loading label="Loading the hosts" />
      ) : (
        <Stack data-revision={revision} data-standing={standing.state}>
          <Totals hosts={hosts} />
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
                data={[...colours]}
                value={colour}
                onChange={(value) => set('colour', value)}
              />
            </div>
          </Group>
          {hosts.length === 0 ? null : <Legend entries={legendOf(hosts, colour)} />}
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

function mappedHost(
  host: MapRow,
  { grouping, colour }: { readonly grouping: (typeof groupings)[number]; readonly colour: Colour },
): MappedHost {
  const { name, pool, state, labels, consumers, classes, use } = host;
  const group = grouping === 'none' ? 'all' : grouping === 'pool' ? pool : (labels[grouping] ?? `no ${grouping}`);
  const vcpu = classes['VCPU'];
  const held = vcpu === undefined ? '' : `, ${shareText(vcpu.used, vcpu.capacity, (value) => `${value} VCPU`)}`;
  return {
    name,
    group: visibleText(group),
    look: colour === 'state' ? lookOfState(state) : lookOfShare(shareOf(host, colour)),
    told: `${name}: ${state}${held}, ${consumers} consumers${use ? `; in use: ${(use.milliCpus / 1_000).toFixed(1)} CPUs, ${memoryText(use.memoryMiB)}` : ''}`,
  };
}

function legendOf(hosts: readonly MapRow[], colour: Colour): LegendEntry[] {
  return colour === 'state'
    ? statesLegend(hosts.map(({ state }) => state))
    : sharesLegend(hosts.map((host) => shareOf(host, colour)));
}

/** 0 to 1; undefined: not known. */
function shareOf({ classes, use }: MapRow, colour: 'claims' | 'use'): number | undefined {
  if (colour === 'claims') return scarcest(classes);
  if (use === undefined) return undefined;
  const capacity = (name: string): number => classes[name]?.capacity ?? 0;
  return scarcest({
    VCPU: { used: use.milliCpus / 1_000, capacity: capacity('VCPU') },
    MEMORY_MB: { used: use.memoryMiB, capacity: capacity('MEMORY_MB') },
  });
}

/** The class of which the largest share is held. */
function scarcest(classes: MapRow['classes']): number {
  return Math.max(0, ...Object.values(classes).map(({ used, capacity }) => (capacity > 0 ? used / capacity : 0)));
}

function Totals({ hosts }: { readonly hosts: readonly MapRow[] }): ReactNode {
  const states = Map.groupBy(hosts, ({ state }) => state);
  const sum = (name: string, field: 'used' | 'capacity'): number =>
    hosts.reduce((total, { classes }) => total + (classes[name]?.[field] ?? 0), 0);
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
