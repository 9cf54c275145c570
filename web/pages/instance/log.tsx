// The console log of an instance in a terminal, as it comes. Output of guests is untrusted: nothing of it can set the title, open windows
// or write to the clipboard.

import '@xterm/xterm/css/xterm.css';
import { Alert, Stack } from '@mantine/core';
import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { Instance } from '../../../src/api/resources/instance.ts';
import { client } from '../../data/client.ts';
import { errorText } from '../../data/session.ts';

export function Log({ instance: { metadata } }: { readonly instance: Instance }): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const [fault, setFault] = useState<string>();
  const { name, project } = metadata;
  useEffect(() => {
    if (place.current === null) return undefined;
    const terminal = new Terminal({
      disableStdin: true,
      convertEol: true,
      scrollback: 20_000,
      fontSize: 13,
      screenReaderMode: true,
      linkHandler: null,
    });
    terminal.parser.registerOscHandler(52, () => true); // the clipboard is the user's
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    terminal.open(place.current);
    fit.fit();
    const over = new AbortController();
    const resized = new ResizeObserver(() => fit.fit());
    resized.observe(place.current);
    const read = async (): Promise<void> => {
      for await (const piece of client.log(name, { project, follow: true }, over.signal)) terminal.write(piece);
    };
    read().catch((error: unknown) => {
      if (!over.signal.aborted) setFault(errorText(error));
    });
    return () => {
      over.abort();
      resized.disconnect();
      terminal.dispose();
    };
  }, [name, project]);
  return (
    <Stack>
      {fault === undefined ? null : (
        <Alert color="yellow" role="status" title="The log cannot be followed">
          {fault}
        </Alert>
      )}
      <div ref={place} style={{ height: '60dvh' }} role="region" aria-label="Console log" />
    </Stack>
  );
}
