// Which rules refuse which hosts: one row per reason, one cell per host. Users who may not read hosts see only the numbers.

import { Table, Text as Words, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import type { HostExplanation, ReasonExplanation } from '../../../src/api/explanation.ts';
import { Text, visibleText } from '../../parts/text.tsx';
import classes from './refusals.module.css';

interface RefusalsProps {
  readonly reasons: readonly ReasonExplanation[];
  readonly hosts: readonly HostExplanation[];
  /** Total number of hosts. */
  readonly total: number;
}

export function Refusals({ reasons, hosts, total }: RefusalsProps): ReactNode {
  if (reasons.length === 0) return null;
  const shown = hosts.filter(({ current }) => !current);
  return (
    <>
      <Title order={2} size="h4">
        Which rules refuse which hosts
      </Title>
      <Table aria-label="Rules and hosts">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Reason</Table.Th>
            <Table.Th>Hosts</Table.Th>
            <Table.Th>Only for this</Table.Th>
            {shown.length === 0 ? null : <Table.Th w="60%">{hostsTitle(shown.length, total)}</Table.Th>}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {reasons.map((reason) => (
            <Table.Tr key={`${reason.rule} ${reason.reason}`}>
              <Table.Td>
                <Text>{reason.reason}</Text>
              </Table.Td>
              <Table.Td>
                {reason.hosts} of {total}
              </Table.Td>
              <Table.Td>{reason.alone}</Table.Td>
              {shown.length === 0 ? null : (
                <Table.Td>
                  <Cells reason={reason} hosts={shown} />
                </Table.Td>
              )}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {shown.length === 0 ? (
        <Words size="sm" c="dimmed">
          You see numbers of hosts: your roles do not show hosts.
        </Words>
      ) : null}
    </>
  );
}

function hostsTitle(shown: number, total: number): string {
  return shown < total ? `${shown} of ${total} hosts, one cell each` : 'One cell per host';
}

function Cells({
  reason,
  hosts,
}: {
  readonly reason: ReasonExplanation;
  readonly hosts: readonly HostExplanation[];
}): ReactNode {
  const refuses = ({ refusals }: HostExplanation) =>
    refusals.find(({ rule, reason: found }) => rule === reason.rule && found === reason.reason);
  const refusing = hosts.filter(refuses);
  const named = refusing.slice(0, 20).map(({ host }) => visibleText(host));
  const more = refusing.length > named.length ? ` and ${refusing.length - named.length} more` : '';
  return (
    <div className={classes['cells']} role="img" aria-label={`${reason.reason}: ${named.join(', ')}${more}`}>
      {hosts.map((host) => {
        const refusal = refuses(host);
        const title = `${visibleText(host.host)}: ${refusal ? visibleText(refusal.message) : 'not refused for this reason'}`;
        return <span key={host.host} className={classes[refusal ? refusesAs(host) : 'open']} title={title} />;
      })}
    </div>
  );
}

/** Darkest where no other rule refuses: such hosts are nearest to a fit. */
function refusesAs({ refusals }: HostExplanation): 'alone' | 'among' {
  return refusals.length === 1 ? 'alone' : 'among';
}
