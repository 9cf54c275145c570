// The names of the values of a secret. The values themselves are never returned by the server.

import { Text as Words } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Secret } from '../../../../src/api/resources/secret.ts';
import { exactTime } from '../../../parts/units.ts';
import { CellRow, WideTable } from '../../../parts/wide-table.tsx';

export function SecretKeys({ secret: { status } }: { readonly secret: Secret }): ReactNode {
  const keys = Object.entries(status.keys);
  if (keys.length === 0) return <Words>It has no values.</Words>;
  return (
    <WideTable label="Values" columns={['Name', 'Set']} minWidth={320}>
      {keys.map(([name, { updatedAtMs }]) => (
        <CellRow key={name} cells={[name, exactTime(updatedAtMs)]} />
      ))}
    </WideTable>
  );
}
