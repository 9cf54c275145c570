// The toolbar of a log: search, times, groups, follow, download.

import { Button, Group, SegmentedControl, Switch, Text as Words, TextInput } from '@mantine/core';
import { type ReactNode, useRef } from 'react';
import { useKeys } from '../use-keys.ts';
import type { LogTime } from './log-time.ts';

export function LogToolbar({
  wanted,
  onWanted,
  matches,
  onStep,
  time,
  onTime,
  folds,
  onFolds,
  following,
  onFollowing,
  raw,
  onSave,
}: {
  readonly wanted: string;
  readonly onWanted: (text: string) => void;
  /** Absent: nothing is searched. */
  readonly matches: { readonly at: number; readonly count: number } | undefined;
  readonly onStep: (by: 1 | -1) => void;
  readonly time: LogTime;
  readonly onTime: (time: LogTime) => void;
  /** Absent: the log has none. */
  readonly folds: 'open' | 'closed' | undefined;
  readonly onFolds: () => void;
  readonly following: boolean;
  readonly onFollowing: (following: boolean) => void;
  readonly raw: { readonly href: string; readonly name: string };
  readonly onSave: () => void;
}): ReactNode {
  const field = useRef<HTMLInputElement>(null);
  useKeys({ '/': () => field.current?.focus() });
  return (
    <Group align="end" gap="sm">
      <TextInput
        ref={field}
        label="Search"
        size="xs"
        w={220}
        value={wanted}
        onChange={(event) => onWanted(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') onStep(event.shiftKey ? -1 : 1);
        }}
      />
      {matches === undefined ? null : (
        <Group gap={4}>
          <Words size="sm" role="status">
            {matches.count === 0 ? 'not found' : `${matches.at} of ${matches.count}`}
          </Words>
          <Button size="compact-xs" variant="default" onClick={() => onStep(-1)} aria-label="Previous match">
            ↑
          </Button>
          <Button size="compact-xs" variant="default" onClick={() => onStep(1)} aria-label="Next match">
            ↓
          </Button>
        </Group>
      )}
      <SegmentedControl
        size="xs"
        aria-label="Time"
        value={time}
        onChange={(value) => onTime(value)}
        data={[
          { value: 'off', label: 'No time' },
          { value: 'clock', label: 'Clock' },
          { value: 'since', label: 'Since start' },
        ]}
      />
      {folds === undefined ? null : (
        <Button size="xs" variant="default" onClick={onFolds}>
          {folds === 'closed' ? 'Unfold all' : 'Fold all'}
        </Button>
      )}
      <Switch
        size="xs"
        label="Follow"
        checked={following}
        onChange={(event) => onFollowing(event.currentTarget.checked)}
      />
      <Button size="xs" variant="default" component="a" href={raw.href} download={raw.name}>
        Download raw
      </Button>
      <Button size="xs" variant="default" onClick={onSave}>
        Download text
      </Button>
    </Group>
  );
}
