// A short table that may be wider than its page: it then scrolls horizontally, also with the keyboard.

import { Box, Table } from '@mantine/core';
import type { ReactNode } from 'react';
import { Text } from './text.tsx';

export function WideTable({
  label,
  columns,
  minWidth = 560,
  children,
}: {
  readonly label: string;
  /** Column names; absent: no header. An empty name has no header cell. */
  readonly columns?: readonly string[];
  readonly minWidth?: number;
  readonly children: ReactNode;
}): ReactNode {
  return (
    <Box tabIndex={0} role="region" aria-label={label} style={{ overflowX: 'auto' }}>
      <Table aria-label={label} miw={minWidth}>
        {columns === undefined ? null : (
          <Table.Thead>
            <Table.Tr>
              {columns.map((name) => (name === '' ? <Table.Td key={name} /> : <Table.Th key={name}>{name}</Table.Th>))}
            </Table.Tr>
          </Table.Thead>
        )}
        <Table.Tbody>{children}</Table.Tbody>
      </Table>
    </Box>
  );
}

/** Text is shown as text of a guest or a user is: `Text`. */
export function CellRow({ cells }: { readonly cells: readonly ReactNode[] }): ReactNode {
  return (
    <Table.Tr>
      {cells.map((cell, at) => (
        // The columns of a table do not change places.
        <Table.Td key={at}>{typeof cell === 'string' ? <Text>{cell}</Text> : cell}</Table.Td>
      ))}
    </Table.Tr>
  );
}
