// A state as word, shape and colour: never by colour alone.

import type { ReactNode } from 'react';
import classes from './state-badge.module.css';
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
  Progressing: 'busy',
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

const signs: Readonly<Record<Mood, string>> = { good: '●', busy: '◐', bad: '▲', quiet: '○' };

/** Plain elements: long lists have one in each row. */
export function StateBadge({ state }: { readonly state: string }): ReactNode {
  const mood = moods[state] ?? 'quiet';
  return (
    <span className={`${classes['badge']} ${classes[mood]}`}>
      <span aria-hidden="true">{signs[mood]}</span>
      <span>{visibleText(state)}</span>
    </span>
  );
}
