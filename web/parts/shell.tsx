// The frame of all pages: where one can go, who is logged in, and how to move by keys.

import {
  ActionIcon,
  AppShell,
  Box,
  Burger,
  Button,
  Group,
  Kbd,
  Modal,
  NavLink,
  ScrollArea,
  Stack,
  Text as Words,
  useComputedColorScheme,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { type ReactNode, useMemo } from 'react';
import { Link, Outlet, useLocation } from 'react-router';
import type { WhoAmI } from '../../src/api/routes/access.ts';
import { endSession } from '../data/session.ts';
import { Palette } from './palette.tsx';
import { placesFor } from './places.ts';
import { useKeys } from './use-keys.ts';

export function Shell({ who, onLeft }: { readonly who: WhoAmI; readonly onLeft: () => void }): ReactNode {
  const [menu, { toggle, close }] = useDisclosure();
  const [help, { open: openHelp, close: closeHelp }] = useDisclosure();
  const [palette, { open: openPalette, close: closePalette }] = useDisclosure();
  const { pathname } = useLocation();
  const places = useMemo(() => placesFor(who), [who]);
  useKeys({ '?': openHelp, 'mod+k': openPalette });
  const leave = (): void => void endSession().finally(onLeft);
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 200, breakpoint: 'sm', collapsed: { mobile: !menu } }}
      padding="md"
    >
      <AppShell.Header px="md">
        <Group h="100%" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={menu} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Menu" />
            <Words fw={700} size="lg">
              Berth
            </Words>
          </Group>
          <Group gap="xs" wrap="nowrap">
            <Button
              variant="default"
              size="xs"
              onClick={openPalette}
              visibleFrom="sm"
              rightSection={<Kbd size="xs">Ctrl K</Kbd>}
            >
              Go to
            </Button>
            <ColorSwitch />
            <Words size="sm" visibleFrom="sm">
              {who.kind === 'admin' ? 'admin' : (who.user?.name ?? who.name)}
            </Words>
            <Button variant="subtle" size="xs" onClick={leave}>
              Log out
            </Button>
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label="Pages">
        <ScrollArea>
          {places.map(({ title, items }) => (
            <Box key={title} mb="xs">
              <Words size="xs" c="dimmed" px="sm" py={4}>
                {title}
              </Words>
              {items.map(({ name, path }) => (
                <NavLink
                  key={path}
                  component={Link}
                  to={path}
                  label={name}
                  active={path === '/' ? pathname === '/' : pathname.startsWith(path)}
                  aria-current={pathname === path ? 'page' : undefined}
                  onClick={close}
                  py={4}
                />
              ))}
            </Box>
          ))}
        </ScrollArea>
      </AppShell.Navbar>
      <AppShell.Main>
        <Outlet />
      </AppShell.Main>
      <Palette places={places.flatMap(({ items }) => items)} opened={palette} onClose={closePalette} />
      <Modal opened={help} onClose={closeHelp} title="Keys">
        <Stack gap="xs">
          {keysShown.map(([key, what]) => (
            <Group key={key} justify="space-between">
              <Words size="sm">{what}</Words>
              <Kbd>{key}</Kbd>
            </Group>
          ))}
        </Stack>
      </Modal>
    </AppShell>
  );
}

const keysShown = [
  ['Ctrl K', 'Go to a page or an object'],
  ['/', 'Search in the list'],
  ['?', 'Show these keys'],
  ['Esc', 'Close a dialog'],
] as const;

function ColorSwitch(): ReactNode {
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme('light');
  const other = scheme === 'light' ? 'dark' : 'light';
  return (
    <ActionIcon variant="default" aria-label={`Use ${other} colours`} onClick={() => setColorScheme(other)}>
      <span aria-hidden="true">{scheme === 'light' ? '☾' : '☀'}</span>
    </ActionIcon>
  );
}
