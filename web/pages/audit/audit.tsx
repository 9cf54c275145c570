// The audit log of the server that serves the page: who did what, from where, and the outcome. The filters are in the URL.

import { Alert, Button, Group, List, Select, Text as Words, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo, useState } from 'react';
import { useSearchParams } from 'react-router';
import type { AuditRecord } from '../../../src/api/audit/audit-log.ts';
import { client } from '../../data/client.ts';
import { errorText } from '../../data/session.ts';
import { Page } from '../../parts/page.tsx';
import { Loading } from '../../parts/standing.tsx';
import { Table } from '../../parts/table.tsx';
import { Text } from '../../parts/text.tsx';
import { auditColumns } from './audit-columns.tsx';
import { auditCommand, type AuditFilter, auditFilterOf, isShown, spans } from './audit-filter.ts';
import { CheckAudit } from './check-audit.tsx';

/** More lines are not kept in the page: the newest stay. */
const linesMax = 20_000;
const pageSize = 5_000;

interface AuditLines {
  readonly server: string;
  readonly servers: readonly string[];
  /** The newest first. */
  readonly items: readonly AuditRecord[];
  readonly cut: boolean;
}

export function AuditPage(): ReactNode {
  const [search, setSearch] = useSearchParams();
  const filter = auditFilterOf(search);
  const set = (name: string, value: string | null): void =>
    setSearch(
      (before) => {
        const after = new URLSearchParams(before);
        if (value) after.set(name, value);
        else after.delete(name);
        return after;
      },
      { replace: true },
    );
  const { since, who, object } = filter;
  const log = useQuery({
    queryKey: ['audit', since.value, who, object],
    queryFn: ({ signal }) => readAll(filter, signal),
    retry: false,
    // It may be long: it is read again when it is asked for.
    refetchOnWindowFocus: false,
  });
  const rows = useMemo(
    () => (log.data?.items ?? []).filter((record) => isShown(record, filter)),
    // oxlint-disable-next-line react/exhaustive-deps -- the filter is new each time; these are its parts
    [log.data, filter.face, filter.outcome, filter.verb],
  );
  return (
    <Page title="Audit log" command={auditCommand(filter)} actions={<CheckAudit />}>
      <Group align="end" gap="sm">
        <Select
          label="Since"
          data={spans.map(({ value, label }) => ({ value, label }))}
          value={since.value}
          allowDeselect={false}
          onChange={(value) => set('since', value === '1h' ? null : value)}
          w={140}
        />
        <AskedText label="Who" value={who} onAsked={(value) => set('who', value)} />
        <AskedText label="Object" value={object} onAsked={(value) => set('object', value)} />
        <AskedText label="Verb or kind" value={filter.verb} onAsked={(value) => set('verb', value)} />
        <Select
          label="Face"
          data={['http', 'mcp', 'amqp', 'forge', 'placement', 'server']}
          value={filter.face || null}
          clearable
          clearButtonProps={{ 'aria-label': 'Any face' }}
          placeholder="any"
          onChange={(value) => set('face', value)}
          w={130}
        />
        <Select
          label="Outcome"
          data={['done', 'begun', 'refused', 'failed', 'unknown']}
          value={filter.outcome || null}
          clearable
          clearButtonProps={{ 'aria-label': 'Any outcome' }}
          placeholder="any"
          onChange={(value) => set('outcome', value)}
          w={130}
        />
        <Button variant="default" loading={log.isFetching} onClick={() => void log.refetch()}>
          Read again
        </Button>
      </Group>
      {log.isError ? (
        <Alert color="red" role="alert" title="The audit log cannot be read">
          <Text>{errorText(log.error)}</Text>
        </Alert>
      ) : null}
      {log.data === undefined ? (
        log.isError ? null : (
          <Loading label="Reading the audit log" />
        )
      ) : (
        <>
          <Words style={{ overflowWrap: 'anywhere' }} size="sm" role="status">
            {rows.length === log.data.items.length
              ? `${rows.length} lines`
              : `${rows.length} of ${log.data.items.length} lines`}
            {log.data.cut ? ', the newest; older ones are not shown' : ''} of server <Text>{log.data.server}</Text>
          </Words>
          {rows.length === 0 ? (
            <Words>No line of this time matches.</Words>
          ) : (
            <Table
              label="Audit log"
              columns={auditColumns}
              rows={rows}
              keyOf={({ seq }) => String(seq)}
              minWidth="76rem"
            />
          )}
          <Others servers={log.data.servers} />
        </>
      )}
    </Page>
  );
}

/** All pages of the time, the newest lines first. */
async function readAll({ since, who, object }: AuditFilter, signal: AbortSignal): Promise<AuditLines> {
  const asked = {
    since: Date.now() - since.ms,
    limit: pageSize,
    ...(who === '' ? {} : { who }),
    ...(object === '' ? {} : { object }),
  };
  let page = await client.auditLog(asked);
  const kept = [...page.items];
  let cut = false;
  while (page.continue !== undefined && !signal.aborted) {
    page = await client.auditLog({ ...asked, continue: page.continue });
    kept.push(...page.items);
    if (kept.length > linesMax) {
      kept.splice(0, kept.length - linesMax);
      cut = true;
    }
  }
  return { server: page.server, servers: page.servers, items: kept.reverse(), cut };
}

/** A field that submits on Enter, or when it loses the focus. */
function AskedText({
  label,
  value,
  onAsked,
}: {
  readonly label: string;
  readonly value: string;
  readonly onAsked: (value: string) => void;
}): ReactNode {
  const [text, setText] = useState(value);
  const ask = (): void => {
    if (text.trim() !== value) onAsked(text.trim());
  };
  return (
    <TextInput
      label={label}
      value={text}
      onChange={(event) => setText(event.currentTarget.value)}
      onBlur={ask}
      onKeyDown={(event) => {
        if (event.key === 'Enter') ask();
      }}
      w={150}
    />
  );
}

function Others({ servers }: { readonly servers: readonly string[] }): ReactNode {
  if (servers.length < 2) return null;
  return (
    <>
      <Words size="sm">Each server has its own log. Known servers:</Words>
      <List size="sm">
        {servers.map((url) => (
          <List.Item key={url}>
            <Text>{url}</Text>
          </List.Item>
        ))}
      </List>
    </>
  );
}
