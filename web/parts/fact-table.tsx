// Names and values of one thing, one below the other.

import { Table } from '@mantine/core';
import type { ReactNode } from 'react';
import classes from './fact-table.module.css';

export type Fact = readonly [name: string, value: ReactNode];

export function FactTable({ facts }: { readonly facts: readonly Fact[] }): ReactNode {
  return (
    <Table variant="vertical" withTableBorder layout="fixed">
      <Table.Tbody>
        {facts.map(([name, value]) => (
          <Table.Tr key={name}>
            <Table.Th w={130}>{name}</Table.Th>
            <Table.Td className={classes['value']}>{value}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
