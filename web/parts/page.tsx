// What every page has: a heading that says what it shows, the title of the window, and the command that shows the same.

import { Group, Stack, Title } from '@mantine/core';
import { type ReactNode, useEffect, useRef } from 'react';
import { Command } from './command.tsx';
import { visibleText } from './text.tsx';

export function Page({
  title,
  command,
  actions,
  children,
}: {
  readonly title: string;
  readonly command?: string;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}): ReactNode {
  const heading = useRef<HTMLHeadingElement>(null);
  const shown = visibleText(title).slice(0, 256);
  useEffect(() => {
    document.title = `${shown} · Berth`;
    heading.current?.focus({ preventScroll: true }); // a reader of the screen says where it is
  }, [shown]);
  return (
    <Stack gap="md">
      <Group justify="space-between" align="center">
        <Title order={1} size="h2" ref={heading} tabIndex={-1} style={{ outline: 'none' }}>
          <bdi>{shown}</bdi>
        </Title>
        <Group gap="sm">
          {actions}
          {command === undefined ? null : <Command words={command} />}
        </Group>
      </Group>
      {children}
    </Stack>
  );
}
