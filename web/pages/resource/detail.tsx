// One resource of any kind: what was asked for, what is, and what happened to it.

import { Code, Tabs } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { useParams, useSearchParams } from 'react-router';
import { type AnyResource, type Kind, resourceDefinitions } from '../../../src/api/resources/index.ts';
import { useMay } from '../../data/may.ts';
import { useOne } from '../../data/use-list.ts';
import { Page } from '../../parts/page.tsx';
import { Loading, StandingBanner } from '../../parts/standing.tsx';
import { visibleText } from '../../parts/text.tsx';
import { kindOfPlural } from '../../paths.ts';
import { commandOf } from './commands.ts';
import { Edit } from './edit/edit.tsx';
import { EventsOf } from './events-of.tsx';
import { KindButtons } from './kinds/kind-buttons.tsx';
import { hasSection, Section } from './kinds/sections.tsx';
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
  const { found, standing, revision, retry } = useOne(kind, { name, project });
  return (
    <Page
      title={`${kind} ${name}`}
      command={commandOf(kind, { name, project })}
      actions={found && <KindButtons kind={kind} resource={found} />}
    >
      <StandingBanner standing={standing} retry={retry} />
      {standing.state === 'loading' ? <Loading label={`Loading ${kind} ${name}`} /> : null}
      {found === undefined && standing.state === 'live'
        ? `There is no ${kind} of this name, or you may not see it.`
        : null}
      {found === undefined ? null : (
        <div data-revision={revision} data-standing={standing.state}>
          <ResourceTabs kind={kind} resource={found} />
        </div>
      )}
    </Page>
  );
}

export function ResourceTabs({ kind, resource }: { readonly kind: Kind; readonly resource: AnyResource }): ReactNode {
  const [tab, setTab] = useState<string | null>(hasSection(resource) ? 'overview' : 'yaml');
  const may = useMay('update', kind, resource.metadata.project || undefined);
  const verbs: readonly string[] = resourceDefinitions[kind].verbs;
  const editable = may && verbs.includes('replace');
  return (
    <Tabs value={tab} onChange={setTab} keepMounted={false}>
      <Tabs.List>
        {hasSection(resource) ? <Tabs.Tab value="overview">Overview</Tabs.Tab> : null}
        <Tabs.Tab value="yaml">YAML</Tabs.Tab>
        {editable ? <Tabs.Tab value="edit">Edit</Tabs.Tab> : null}
        <Tabs.Tab value="events">Events</Tabs.Tab>
      </Tabs.List>
      {hasSection(resource) ? (
        <Tabs.Panel value="overview" pt="sm">
          <Section resource={resource} />
        </Tabs.Panel>
      ) : null}
      <Tabs.Panel value="yaml" pt="sm">
        <Code block tabIndex={0} role="region" aria-label="YAML">
          {visibleText(yamlText(resource)).replaceAll('⟨U+000A⟩', '\n')}
        </Code>
      </Tabs.Panel>
      {editable ? (
        <Tabs.Panel value="edit" pt="sm">
          <Edit kind={kind} resource={resource} onDone={() => setTab('yaml')} />
        </Tabs.Panel>
      ) : null}
      <Tabs.Panel value="events" pt="sm">
        <EventsOf subject={resource.metadata.id} />
      </Tabs.Panel>
    </Tabs>
  );
}
