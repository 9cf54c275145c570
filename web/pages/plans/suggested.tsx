// Plans that the schedules of pools suggest: each is made once more by its form, and applied there.

import { List, Stack, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import type { PoolRebalance } from '../../../src/api/resources/pool-rebalance.ts';
import { useRows } from '../../data/use-list.ts';
import { PageLink } from '../../parts/link.tsx';
import { paths } from '../../paths.ts';

export function Suggested(): ReactNode {
  const { known } = useRows('pool', '');
  const suggested = known.flatMap(({ metadata, spec: { rebalance }, status }) => {
    const last = status.rebalance?.last;
    if (rebalance === undefined || last?.outcome !== 'Suggested') return [];
    return [{ name: metadata.name, to: formOf(metadata.name, rebalance), moves: last.moves, hosts: last.hosts }];
  });
  if (suggested.length === 0) return null;
  return (
    <Stack component="section" aria-label="Suggested">
      <Title order={2} size="h4">
        Suggested
      </Title>
      <List>
        {suggested.map(({ name, to, moves, hosts }) => (
          <List.Item key={name}>
            <PageLink
              to={to}
            >{`Pool ${name}: ${moves === 1 ? 'one move' : `${moves} moves`} to empty ${hosts.join(', ')}`}</PageLink>
          </List.Item>
        ))}
      </List>
    </Stack>
  );
}

/** The form of a rebalance, filled in with the options of the schedule: the same options make the same plan. */
function formOf(pool: string, schedule: PoolRebalance): string {
  const { budget, thresholdPercent, movesMax, coolDownMs, moves, emptiedMin } = schedule;
  const numbers = { budget, threshold: thresholdPercent, movesMax, coolDown: coolDownMs / 60_000, emptiedMin };
  const texts = Object.entries(numbers).map(([field, value]) => [field, String(value)] as const);
  return paths.plan('rebalance', { pool, moves, ...Object.fromEntries(texts) });
}
