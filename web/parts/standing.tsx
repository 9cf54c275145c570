// What a page says of its data: that it is loading, that it is old and since when, that it may not be seen.

import { Alert, Button, Skeleton, Stack } from '@mantine/core';
import { type ReactNode, useEffect, useState } from 'react';
import type { Standing } from '../data/live-list.ts';
import { agoText } from './units.ts';

export function StandingBanner({
  standing,
  retry,
}: {
  readonly standing: Standing;
  readonly retry: () => void;
}): ReactNode {
  const nowMs = useNow(1_000);
  if (standing.state === 'offline')
    return (
      <Alert color="yellow" title="No connection to the server" role="status">
        What you see is from {agoText(standing.sinceMs, nowMs)}. It is tried again by itself. ({standing.why}){' '}
        <Button size="compact-xs" variant="default" onClick={retry}>
          Try now
        </Button>
      </Alert>
    );
  if (standing.state === 'refused')
    return (
      <Alert color="red" title="You may not see this" role="alert">
        {standing.why}{' '}
        <Button size="compact-xs" variant="default" onClick={retry}>
          Try again
        </Button>
      </Alert>
    );
  return null;
}

/** Shown only when loading takes long enough to be noticed. */
export function Loading({ label }: { readonly label: string }): ReactNode {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 200);
    return () => clearTimeout(timer);
  }, []);
  if (!late) return null;
  return (
    <Stack gap="xs" aria-busy="true" aria-label={label} role="status">
      <Skeleton height={24} />
      <Skeleton height={24} />
      <Skeleton height={24} width="60%" />
    </Stack>
  );
}

/** The time, again every `everyMs`. */
export function useNow(everyMs: number): number {
  const [nowMs, setNowMs] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return nowMs;
}
