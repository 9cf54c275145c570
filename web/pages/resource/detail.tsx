// One resource of any kind: what was asked for, what is, and what happened to it.

import { Code, Tabs } from '@mantine/core';
import type { ReactNode } from 'react';
import { useParams, useSearchParams } from 'react-router';
import type { AnyResource, Kind } from '../../../src/api/resources/index.ts';
import { useList } from '../../data/use-list.ts';
import { Page } from '../../parts/page.tsx';
import { Loading, StandingBanner } from '../../parts/standing.tsx';
import { visibleText } from '../../parts/text.tsx';
import { kindOfPlural } from '../../paths.ts';
import { commandOf } from './commands.ts';
import { EventsOf } from './events-of.tsx';
import { yamlText } from './yaml-text.ts';

export function DetailPage(): ReactNode {
  const { plural, name = '' } = useParams();
  const [search] = useSearchParams();
  const kind = kindOfPlural(plural);
  if (kind === undefined) return <Page title="There is no such page">The address may be mistyped.</Page>;
  return <Detail kind={kind} name={name} project={search.get('project') ?? undefined} />;
}

interface Named {
  readonly kind: Kind;
  readonly name: string;
  readonly project: string | undefined;
}

function Detail({ kind, name, project }: Named): ReactNode {
  const { items, standing, revision, retry } = useList(kind);
  const found = items.find(({ metadata }) => isNamed(metadata, { name, project }));
  return (
    <Page title={`${kind} ${name}`} command={commandOf(kind, { name, project })}>
      <StandingBanner standing={standing} retry={retry} />
      {standing.state === 'loading' ? <Loading label={`Loading ${kind} ${name}`} /> : null}
      {found === undefined && standing.state === 'live'
        ? `There is no ${kind} of this name, or you may not see it.`
        : null}
      {found === undefined ? null : (
        <div data-revision={revision} data-standing={standing.state}>
          <ResourceTabs resource={found} />
        </div>
      )}
    </Page>
  );
}

export function isNamed(
  metadata: { readonly name: string; readonly project: string; readonly id: string },
  { name, project }: { readonly name: string; readonly project: string | undefined },
): boolean {
  return (metadata.name === name || metadata.id === name) && (!project || metadata.project === project);
}

export function ResourceTabs({ resource }: { readonly resource: AnyResource }): ReactNode {
  return (
    <Tabs defaultValue="yaml" keepMounted={false}>
      <Tabs.List>
        <Tabs.Tab value="yaml">YAML</Tabs.Tab>
        <Tabs.Tab value="events">Events</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="yaml" pt="sm">
        <Code block tabIndex={0} role="region" aria-label="YAML">
          {visibleText(yamlText(resource)).replaceAll('⟨U+000A⟩', '\n')}
        </Code>
      </Tabs.Panel>
      <Tabs.Panel value="events" pt="sm">
        <EventsOf subject={resource.metadata.id} />
      </Tabs.Panel>
    </Tabs>
  );
}
