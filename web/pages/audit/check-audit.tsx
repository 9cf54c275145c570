// Compares the files of the audit log with their hash chain, for those who may.

import { Alert, List, Stack } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import type { AuditLogCheck } from '../../../src/api/audit/audit-log.ts';
import { client } from '../../data/client.ts';
import { useMay } from '../../data/may.ts';
import { Actions } from '../../parts/actions.tsx';
import { Text } from '../../parts/text.tsx';

export function CheckAudit(): ReactNode {
  const may = useMay('read-audit', 'audit');
  const [check, setCheck] = useState<AuditLogCheck>();
  if (!may) return null;
  return (
    <Stack gap="xs">
      <Actions
        actions={[
          {
            name: 'Check the files',
            command: 'berth audit log --verify',
            run: async () => setCheck(await client.checkAuditLog()),
          },
        ]}
      />
      {check === undefined ? null : check.faults.length === 0 ? (
        <Alert color="green" role="status" p="xs">
          Whole: {check.lines} lines in {check.files} files
        </Alert>
      ) : (
        <Alert color="red" role="alert" title="The audit log was changed">
          <List size="sm">
            {check.faults.map(({ code, file, seq, message }) => (
              <List.Item key={`${code} ${file} ${seq} ${message}`}>
                <Text>{[code, file, message].filter(Boolean).join(': ')}</Text>
              </List.Item>
            ))}
          </List>
        </Alert>
      )}
    </Stack>
  );
}
