// Ways into the guest: its serial console, its screen, a command in it. Each is loaded when it is opened.

import { Button, Group, Stack, TextInput } from '@mantine/core';
import { lazy, type ReactNode, Suspense, useState } from 'react';
import type { Instance } from '../../../src/api/resources/instance.ts';
import { Loading } from '../../parts/standing.tsx';
import { wordsOf } from './words-of.ts';

const GuestTerminalView = lazy(async () => ({
  default: (await import('../../parts/terminal/guest-terminal-view.tsx')).GuestTerminalView,
}));
const ScreenView = lazy(async () => ({ default: (await import('./screen.tsx')).ScreenView }));

interface Of {
  readonly instance: Instance;
}

export function Console({ instance: { metadata, status } }: Of): ReactNode {
  return (
    <Suspense fallback={<Loading label="Loading the terminal" />}>
      <GuestTerminalView
        key={`${metadata.id} ${status.incarnation}`}
        name={metadata.name}
        project={metadata.project}
        label="Serial console"
        whyRefused={whyRefused(status, 'console', 'Containers have a log, but no console.')}
      />
    </Suspense>
  );
}

export function Screen({ instance: { metadata, status } }: Of): ReactNode {
  return (
    <Suspense fallback={<Loading label="Loading the screen" />}>
      <ScreenView
        key={`${metadata.id} ${status.incarnation}`}
        name={metadata.name}
        project={metadata.project}
        whyRefused={whyRefused(status, 'screen', 'Only virtual machines have a screen.')}
      />
    </Suspense>
  );
}

export function Exec({ instance: { metadata, status } }: Of): ReactNode {
  const [text, setText] = useState('sh');
  const [command, setCommand] = useState<readonly string[]>();
  return (
    <Stack>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setCommand(wordsOf(text));
        }}
      >
        <Group align="end">
          <TextInput
            label="Command"
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            w={420}
            maw="100%"
            ff="monospace"
          />
          <Button type="submit" disabled={text.trim() === ''}>
            Run
          </Button>
        </Group>
      </form>
      {command === undefined ? null : (
        <Suspense fallback={<Loading label="Loading the terminal" />}>
          <GuestTerminalView
            name={metadata.name}
            project={metadata.project}
            command={command}
            label="Output of the command"
            whyRefused={whyRefused(
              status,
              'command',
              'Virtual machines take commands over SSH: “berth ssh” does that.',
            )}
          />
        </Suspense>
      )}
    </Stack>
  );
}

/** A browser does not tell a page why a WebSocket was refused. */
function whyRefused(status: Instance['status'], what: string, otherwise: string): string {
  const state = status.guest?.state ?? (status.host === undefined ? 'not placed yet' : 'not started yet');
  return `The host refuses a ${what}. The guest is ${state}. ${otherwise}`;
}
