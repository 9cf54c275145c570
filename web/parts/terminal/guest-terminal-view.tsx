// A terminal at a guest, with the state of its connection beside it.

import { Button, Group, Stack, Text as Words } from '@mantine/core';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { visibleText } from '../text.tsx';
import { GuestTerminal, type LinkState } from './guest-terminal.ts';

export function GuestTerminalView({
  name,
  project,
  command,
  label,
  whyRefused,
}: {
  readonly name: string;
  readonly project: string;
  /** Absent: the serial console. The same array for the same command. */
  readonly command?: readonly string[];
  readonly label: string;
  readonly whyRefused: string;
}): ReactNode {
  const frame = useRef<HTMLDivElement>(null);
  const place = useRef<HTMLDivElement>(null);
  const [link, setLink] = useState<LinkState>({ state: 'connecting' });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (place.current === null) return undefined;
    const terminal = new GuestTerminal(
      place.current,
      { name, project, whyRefused, ...(command ? { command } : {}) },
      setLink,
    );
    terminal.focus();
    return () => terminal.close();
  }, [name, project, command, whyRefused, attempt]);
  return (
    <Stack gap="xs" ref={frame}>
      <Group justify="space-between">
        <Words size="sm" role="status" data-link={link.state}>
          {visibleText(linkText(link)).slice(0, 500)}
        </Words>
        <Group gap="xs">
          {link.state === 'over' ? (
            <Button size="xs" variant="default" onClick={() => setAttempt(attempt + 1)}>
              Connect again
            </Button>
          ) : null}
          <Button size="xs" variant="default" onClick={() => void frame.current?.requestFullscreen()}>
            Full screen
          </Button>
        </Group>
      </Group>
      <div ref={place} style={{ height: '60dvh', flexGrow: 1 }} role="region" aria-label={label} key={attempt} />
      <Words size="sm" c="dimmed">
        Shift+Esc leaves the terminal. Selected text is copied with Ctrl+Insert, and pasted with Shift+Insert.
      </Words>
    </Stack>
  );
}

function linkText(link: LinkState): string {
  switch (link.state) {
    case 'connecting':
      return 'Connecting …';
    case 'open':
      return 'Connected';
    case 'lost':
      return `Not connected: ${link.why}. It is tried again by itself.`;
    case 'over':
      return link.why;
  }
}
