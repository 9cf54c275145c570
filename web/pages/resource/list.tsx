// The list of any kind: live, filtered by what stands in the address, of any length.

import { Button, Group, Text as Words, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { lazy, type ReactNode, Suspense, useMemo, useRef } from 'react';
import { Link, useParams, useSearchParams } from 'react-router';
import { type Kind, type ResourceByKind, resourceDefinitions } from '../../../src/api/resources/index.ts';
import { useMay } from '../../data/may.ts';
import type { Rows } from '../../data/row-window.ts';
import { useRows } from '../../data/use-list.ts';
import { PageLink } from '../../parts/link.tsx';
import { Page } from '../../parts/page.tsx';
import { titleOf } from '../../parts/places.ts';
import { Loading, StandingBanner, useNow } from '../../parts/standing.tsx';
import { type Column, type Sort, Table } from '../../parts/table.tsx';
import { visibleText } from '../../parts/text.tsx';
import { agoText, exactTime } from '../../parts/units.ts';
import { useKeys } from '../../parts/use-keys.ts';
import { kindOfPlural, paths } from '../../paths.ts';
import { BulkBar } from './bulk/bulk-bar.tsx';
import { useBulk } from './bulk/use-bulk.ts';
import { columnsOf } from './columns.tsx';
import { commandOf } from './commands.ts';
import { useSortedRows } from './sorted-rows.ts';

const DurationsChart = lazy(async () => ({ default: (await import('../jobs/durations-chart.tsx')).DurationsChart }));

export function ListPage(): ReactNode {
  const { plural } = useParams();
  const kind = kindOfPlural(plural);
  if (kind === undefined) return <Page title="There is no such page">The address may be mistyped.</Page>;
  return <ListOf kind={kind} key={kind} />;
}

type Row = ResourceByKind[Kind];

function ListOf({ kind }: { readonly kind: Kind }): ReactNode {
  const [search] = useSearchParams();
  const words = useDebouncedValue(search.get('q') ?? '', 150)[0];
  const sort = sortOf(search.get('sort'));
  return sort === undefined ? (
    <WindowList kind={kind} words={words} />
  ) : (
    <SortedList kind={kind} words={words} sort={sort} />
  );
}

interface Listed {
  readonly kind: Kind;
  readonly words: string;
}

/** Of any length: only what is looked at is read. */
function WindowList({ kind, words }: Listed): ReactNode {
  return <ListView kind={kind} rows={useRows(kind, words)} sort={undefined} />;
}

/** An order needs all rows. */
function SortedList({ kind, words, sort }: Listed & { readonly sort: Sort }): ReactNode {
  return <ListView kind={kind} rows={useSortedRows(kind, { words, sort, columns: allColumns(kind, 0) })} sort={sort} />;
}

function ListView({
  kind,
  rows,
  sort,
}: {
  readonly kind: Kind;
  readonly rows: Rows<Row> & { retry(): void };
  readonly sort: Sort | undefined;
}): ReactNode {
  const [search, setSearch] = useSearchParams();
  const filter = search.get('q') ?? '';
  const { standing, revision, retry } = rows;
  const setParameter = (name: string, value: string): void =>
    setSearch((before) => withParameter(before, name, value), { replace: true });
  const field = useRef<HTMLInputElement>(null);
  useKeys({ '/': () => field.current?.focus() });
  const nowMs = useNow(10_000);
  const columns = useMemo(() => allColumns(kind, nowMs), [kind, nowMs]);
  const bulk = useBulk(kind, rows.known);
  return (
    <Page title={titleOf(kind)} command={commandOf(kind)} actions={<New kind={kind} />}>
      <StandingBanner standing={standing} retry={retry} />
      {kind === 'job' ? (
        <DurationsSwitch
          shown={search.get('show') === 'durations'}
          onShown={(shown) => setParameter('show', shown ? 'durations' : '')}
        />
      ) : null}
      <Group justify="space-between" align="end">
        <TextInput
          ref={field}
          label="Filter"
          placeholder="name, project=web, state=Pending, tier=db"
          size="sm"
          value={filter}
          onChange={(event) => setParameter('q', event.currentTarget.value)}
          w={400}
          maw="100%"
        />
        <Words size="sm" role="status">
          {rows.length} {resourceDefinitions[kind].plural}
        </Words>
      </Group>
      {standing.state === 'loading' ? (
        <Loading label={`Loading ${resourceDefinitions[kind].plural}`} />
      ) : rows.length === 0 ? (
        <Words>
          {filter === ''
            ? `There are no ${resourceDefinitions[kind].plural} that you may see.`
            : 'Nothing matches the filter.'}
        </Words>
      ) : (
        <div data-revision={revision} data-standing={standing.state}>
          <BulkBar bulk={bulk} kind={kind} />
          <Table
            label={titleOf(kind)}
            columns={columns}
            rows={rows}
            keyOf={({ metadata }) => metadata.id}
            sort={sort}
            onSort={(column) => setParameter('sort', nextSort(sort, column))}
            selection={bulk.selection}
            nameOf={({ metadata }) => metadata.name}
          />
        </div>
      )}
    </Page>
  );
}

/** Charts are loaded when they are opened. */
function DurationsSwitch({
  shown,
  onShown,
}: {
  readonly shown: boolean;
  readonly onShown: (shown: boolean) => void;
}): ReactNode {
  return (
    <>
      <Group>
        <Button size="xs" variant="default" aria-expanded={shown} onClick={() => onShown(!shown)}>
          {shown ? 'Hide durations' : 'Show durations'}
        </Button>
      </Group>
      {shown ? (
        <Suspense fallback={<Loading label="Loading the durations" />}>
          <DurationsChart />
        </Suspense>
      ) : null}
    </>
  );
}

/** `State`, or `-State` for the opposite order. */
function sortOf(text: string | null): Sort | undefined {
  if (!text) return undefined;
  return { column: text.replace(/^-/, ''), descending: text.startsWith('-') };
}

/** One more click each: the order, its opposite, none. */
function nextSort(sort: Sort | undefined, column: string): string {
  if (sort?.column !== column) return column;
  return sort.descending ? '' : `-${column}`;
}

function withParameter(search: URLSearchParams, name: string, value: string): URLSearchParams {
  const after = new URLSearchParams(search);
  if (value === '') after.delete(name);
  else after.set(name, value);
  return after;
}

function New({ kind }: { readonly kind: Kind }): ReactNode {
  const may = useMay('create', kind);
  const verbs: readonly string[] = resourceDefinitions[kind].verbs;
  if (!may || !verbs.includes('create')) return null;
  return (
    <Button size="xs" component={Link} to={paths.create(kind)}>
      New {kind}
    </Button>
  );
}

function allColumns(kind: Kind, nowMs: number): readonly Column<Row>[] {
  const { scope } = resourceDefinitions[kind];
  const own = columnsOf(kind);
  return [
    {
      name: 'Name',
      width: '2fr',
      show: ({ metadata }) => (
        <PageLink to={paths.one(kind, metadata)}>
          <bdi>{visibleText(metadata.name)}</bdi>
        </PageLink>
      ),
      order: ({ metadata }) => metadata.name,
    },
    ...(scope === 'project'
      ? [
          {
            name: 'Project',
            width: '1fr',
            show: ({ metadata }: Row) => metadata.project,
            order: ({ metadata }: Row) => metadata.project,
          },
        ]
      : []),
    ...(own.length > 0
      ? own
      : [
          {
            name: 'Labels',
            width: '2fr',
            show: ({ metadata }: Row) =>
              Object.entries(metadata.labels)
                .map(([label, value]) => `${label}=${value}`)
                .join(' ') || '–',
          },
        ]),
    {
      name: 'Age',
      width: '6rem',
      show: ({ metadata: { createdAtMs } }) => (
        <span title={exactTime(createdAtMs)}>{agoText(createdAtMs, nowMs)}</span>
      ),
      order: ({ metadata: { createdAtMs } }) => -createdAtMs,
    },
  ];
}
