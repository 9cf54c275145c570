// A state as word, shape and colour: never by colour alone.

import { Badge } from '@mantine/core';
import type { ReactNode } from 'react';
import { visibleText } from './text.tsx';

type Mood = 'good' | 'busy' | 'bad' | 'quiet';

const moods: Readonly<Record<string, Mood>> = {
  Ready: 'good',
  Running: 'good',
  Succeeded: 'good',
  Healthy: 'good',
  Available: 'good',
  done: 'good',
  Pending: 'busy',
  Queued: 'busy',
  Starting: 'busy',
  Scheduled: 'busy',
  Stopping: 'busy',
  Draining: 'busy',
  Updating: 'busy',
  Placing: 'busy',
  Booting: 'busy',
  Finishing: 'busy',
  begun: 'busy',
  Failed: 'bad',
  NotReady: 'bad',
  Down: 'bad',
  Unknown: 'bad',
  Warning: 'bad',
  refused: 'bad',
  failed: 'bad',
  unknown: 'bad',
  TimedOut: 'bad',
};

/** White text on each has a contrast of 6 or more. */
const looks: Readonly<Record<Mood, { readonly color: string; readonly sign: string }>> = {
  good: { color: '#1f6b2f', sign: '●' },
  busy: { color: '#0b4f93', sign: '◐' },
  bad: { color: '#a51111', sign: '▲' },
  quiet: { color: '#495057', sign: '○' },
};

export function StateBadge({ state }: { readonly state: string }): ReactNode {
  const { color, sign } = looks[moods[state] ?? 'quiet'];
  return (
    <Badge color={color} variant="filled" tt="none" leftSection={<span aria-hidden="true">{sign}</span>}>
      {visibleText(state)}
    </Badge>
  );
}
