// The screen of a virtual machine, with its keyboard and mouse.

import { Button, Group, Stack, Switch, Text as Words } from '@mantine/core';
import RFB from '@novnc/novnc';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { carry, guestSocket } from '../../data/guest-socket.ts';
import { errorText } from '../../data/session.ts';
import { visibleText } from '../../parts/text.tsx';

export function ScreenView({
  name,
  project,
  whyRefused,
}: {
  readonly name: string;
  readonly project: string;
  readonly whyRefused: string;
}): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const screen = useRef<RFB>(undefined);
  const [told, setTold] = useState('Connecting …');
  const [over, setOver] = useState(false);
  const [viewOnly, setViewOnly] = useState(false);
  const [attempt, setAttempt] = useState(0);

  useEffect(() => {
    let left = false;
    const end = (why: string): void => {
      if (left) return;
      setTold(why);
      setOver(true);
    };
    const open = async (): Promise<void> => {
      const socket = await guestSocket({ name, project, way: 'vnc' });
      if (left || place.current === null) return socket.close();
      const ended = carry(socket, { bytes: () => undefined });
      const rfb = new RFB(place.current, socket);
      rfb.scaleViewport = true;
      rfb.background = '';
      rfb.addEventListener('connect', () => setTold('Connected'));
      screen.current = rfb;
      const { opened, last } = await ended;
      end(!opened ? whyRefused : last?.type === 'error' ? last.message : 'The screen was closed.');
    };
    open().catch((error: unknown) => end(errorText(error)));
    return () => {
      left = true;
      screen.current?.disconnect();
      screen.current = undefined;
    };
  }, [name, project, whyRefused, attempt]);

  useEffect(() => {
    if (screen.current) screen.current.viewOnly = viewOnly;
  }, [viewOnly, told]);

  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Words size="sm" role="status">
          {visibleText(told).slice(0, 500)}
        </Words>
        <Group gap="xs">
          <Switch label="Only look" checked={viewOnly} onChange={(event) => setViewOnly(event.currentTarget.checked)} />
          <Button size="xs" variant="default" onClick={() => screen.current?.sendCtrlAltDel()} disabled={over}>
            Send Ctrl+Alt+Del
          </Button>
          <Button size="xs" variant="default" onClick={() => void place.current?.requestFullscreen()}>
            Full screen
          </Button>
          {over ? (
            <Button
              size="xs"
              variant="default"
              onClick={() => {
                setOver(false);
                setTold('Connecting …');
                setAttempt(attempt + 1);
              }}
            >
              Connect again
            </Button>
          ) : null}
        </Group>
      </Group>
      <div
        ref={place}
        style={{ height: '65dvh', background: '#000' }}
        role="region"
        aria-label="Screen"
        key={attempt}
      />
    </Stack>
  );
}
