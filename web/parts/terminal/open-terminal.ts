// A terminal for what a guest writes. That is untrusted: nothing of it can set the title, open windows, or write to the clipboard.

import '@xterm/xterm/css/xterm.css';
import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import './styles-as-properties.ts';

export interface OpenTerminal {
  readonly terminal: Terminal;
  close(): void;
}

/** `onInput` absent: it only shows. */
export function openTerminal(place: HTMLElement, onInput?: (text: string) => void): OpenTerminal {
  const terminal = new Terminal({
    disableStdin: onInput === undefined,
    convertEol: onInput === undefined,
    scrollback: 20_000,
    fontSize: 13,
    screenReaderMode: true,
    linkHandler: null,
  });
  terminal.parser.registerOscHandler(52, () => true); // the clipboard is the user's
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(place);
  fit.fit();
  const resized = new ResizeObserver(() => fit.fit());
  resized.observe(place);
  if (onInput) {
    terminal.onData(onInput);
    terminal.onBinary(onInput);
    place.addEventListener('paste', askBeforeLines, { capture: true });
  }
  return {
    terminal,
    close() {
      place.removeEventListener('paste', askBeforeLines, { capture: true });
      resized.disconnect();
      terminal.dispose();
    },
  };
}

/** Each line of a paste runs as a command. */
function askBeforeLines(event: ClipboardEvent): void {
  const text = event.clipboardData?.getData('text/plain').trimEnd() ?? '';
  const lines = text.split(/\r\n|\r|\n/).length;
  if (lines === 1 || window.confirm(`Paste ${lines} lines? Each may run as a command.\n\n${text.slice(0, 500)}`))
    return;
  event.preventDefault();
  event.stopImmediatePropagation();
}
