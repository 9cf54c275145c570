// A plan: the figures before and after, and what happens to each resource.

import { Alert, List, Stack, Table, Text as Words } from '@mantine/core';
import type { ReactNode } from 'react';
import { PageLink } from '../../parts/link.tsx';
import { Text, visibleText } from '../../parts/text.tsx';
import { exactTime } from '../../parts/units.ts';
import { WideTable } from '../../parts/wide-table.tsx';
import { kindNamed, paths } from '../../paths.ts';
import type { PlanRow, ShownPlan } from './shown-plan.ts';

/** More rows make a page slow to read and to draw. */
const rowsMax = 500;

export function PlanView({ plan }: { readonly plan: ShownPlan }): ReactNode {
  const { summary, facts, rows, obstacles, notes, hash, expiresAtMs } = plan;
  return (
    <Stack component="section" aria-label="Plan">
      <Words>
        <Text>{summary}</Text>
      </Words>
      {obstacles.length === 0 ? null : (
        <Alert color="red" role="alert" title="It cannot be done">
          <List size="sm">
            {obstacles.map((message) => (
              <List.Item key={message}>
                <Text>{message}</Text>
              </List.Item>
            ))}
          </List>
        </Alert>
      )}
      {facts.length === 0 ? null : (
        <WideTable label="Before and after" columns={['', 'Before', 'After']}>
          {facts.map(({ name, before, after }) => (
            <Table.Tr key={name}>
              <Table.Th>
                <Text>{name}</Text>
              </Table.Th>
              <Table.Td>
                <Text>{before}</Text>
              </Table.Td>
              <Table.Td fw={before === after ? 400 : 600}>
                <Text>{after}</Text>
              </Table.Td>
            </Table.Tr>
          ))}
        </WideTable>
      )}
      {rows.length === 0 ? null : (
        <WideTable label="What happens" columns={['Name', 'Action', 'Before', 'After', 'Why']}>
          {rows.slice(0, rowsMax).map((row) => (
            <Table.Tr key={`${row.kind} ${row.project} ${row.name} ${row.before}`}>
              <Table.Td>
                <RowName row={row} />
              </Table.Td>
              <Table.Td {...(row.bad ? { c: 'red', fw: 600 } : {})}>{row.action}</Table.Td>
              <Table.Td>
                <Text>{row.before}</Text>
              </Table.Td>
              <Table.Td>
                <Text>{row.after}</Text>
              </Table.Td>
              <Table.Td>
                <Text>{row.why}</Text>
              </Table.Td>
            </Table.Tr>
          ))}
        </WideTable>
      )}
      {rows.length > rowsMax ? <Words>{rows.length - rowsMax} more are not shown.</Words> : null}
      {notes.map((note) => (
        <Words size="sm" key={note}>
          <Text>{note}</Text>
        </Words>
      ))}
      {hash === undefined ? null : (
        <Words size="sm" data-plan={hash}>
          Plan {hash}
          {expiresAtMs === undefined ? '' : `, valid until ${exactTime(expiresAtMs)}`}
        </Words>
      )}
    </Stack>
  );
}

function RowName({ row: { kind, project, name } }: { readonly row: PlanRow }): ReactNode {
  const known = kindNamed(kind);
  const shown = (
    <bdi>
      {visibleText(project === '' || project === 'default' ? name : `${project}/${name}`)}
      {kind === 'instance' ? '' : ` (${kind})`}
    </bdi>
  );
  return known === undefined ? shown : <PageLink to={paths.one(known, { name, project })}>{shown}</PageLink>;
}
