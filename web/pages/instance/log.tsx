// The console log of an instance in a terminal, as it comes. After a break it goes on from the byte that it had.

import { Alert, Stack } from '@mantine/core';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { ApiError } from '../../../src/api/errors.ts';
import type { Instance } from '../../../src/api/resources/instance.ts';
import { client } from '../../data/client.ts';
import { errorText } from '../../data/session.ts';
import { openTerminal } from '../../parts/terminal/open-terminal.ts';

const retryMs = 2_000;

export function Log({ instance: { metadata } }: { readonly instance: Instance }): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const [fault, setFault] = useState<string>();
  const { name, project } = metadata;
  useEffect(() => {
    if (place.current === null) return undefined;
    const { terminal, close } = openTerminal(place.current);
    const over = new AbortController();
    let offset = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async (): Promise<void> => {
      try {
        for await (const piece of client.log(name, { project, follow: true, offset }, over.signal)) {
          setFault(undefined);
          offset += piece.length;
          terminal.write(piece);
        }
      } catch (error) {
        if (over.signal.aborted) return;
        setFault(errorText(error));
        if (error instanceof ApiError && (error.code === 'Forbidden' || error.code === 'NotFound')) return;
      }
      if (!over.signal.aborted) timer = setTimeout(() => void read(), retryMs); // the guest may start later
    };
    void read();
    return () => {
      over.abort();
      clearTimeout(timer);
      close();
    };
  }, [name, project]);
  return (
    <Stack>
      {fault === undefined ? null : (
        <Alert color="yellow" role="status" title="The log cannot be followed now">
          {fault}
        </Alert>
      )}
      <div ref={place} style={{ height: '60dvh' }} role="region" aria-label="Console log" />
    </Stack>
  );
}
