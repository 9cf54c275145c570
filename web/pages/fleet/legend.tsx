// What the colours and signs of the map mean, and how many hosts have each.

import { Group, Text as Words } from '@mantine/core';
import type { ReactNode } from 'react';
import { type HostStateName, hostStateNames } from '../../../src/api/resources/host-state.ts';
import { type Look, lookOfShare, lookOfState } from './colours.ts';
import classes from './legend.module.css';

export interface LegendEntry {
  readonly look: Look;
  readonly name: string;
}

/** Of the states that some host has, in a fixed order. */
export function statesLegend(states: readonly HostStateName[]): LegendEntry[] {
  const counts = Map.groupBy(states, (state) => state);
  return hostStateNames.flatMap((state) => {
    const count = counts.get(state)?.length ?? 0;
    return count === 0 ? [] : [{ look: lookOfState(state), name: `${state}: ${count}` }];
  });
}

const steps = [
  { to: 0.005, name: 'nothing' },
  { to: 0.5, name: 'up to 50 %', shown: 0.25 },
  { to: 0.8, name: '50 to 80 %', shown: 0.65 },
  { to: 0.995, name: 'over 80 %', shown: 0.9 },
  { to: Number.POSITIVE_INFINITY, name: 'full', shown: 1 },
] as const;

/** By how much is claimed, or used, of what is scarcest on a host; undefined: not known. */
export function sharesLegend(shares: readonly (number | undefined)[]): LegendEntry[] {
  const known = shares.filter((share) => share !== undefined);
  const others = shares.length - known.length;
  const entries = steps.map((step, i) => {
    const from = steps[i - 1]?.to ?? Number.NEGATIVE_INFINITY;
    const count = known.filter((share) => share >= from && share < step.to).length;
    return { look: lookOfShare('shown' in step ? step.shown : 0), name: `${step.name}: ${count}` };
  });
  return others === 0 ? entries : [...entries, { look: lookOfShare(undefined), name: `not measured: ${others}` }];
}

export function Legend({ entries }: { readonly entries: readonly LegendEntry[] }): ReactNode {
  return (
    <Group component="ul" gap="md" className={classes['legend']} aria-label="Legend">
      {entries.map(({ look, name }) => (
        <li key={name} className={classes['entry']}>
          <span className={classes['cell']} style={{ background: look.colour }} aria-hidden="true">
            {look.sign}
          </span>
          <Words size="sm" component="span">
            {name}
          </Words>
        </li>
      ))}
    </Group>
  );
}
