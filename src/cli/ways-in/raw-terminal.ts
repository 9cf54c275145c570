// The user's terminal, connected to a guest: keys go to the guest unchanged, except the one that detaches.

import type { Cli } from '../cli.ts';

/** Ctrl-], as in telnet and virsh. */
const escapeKey = 0x1d;
export const escapeKeyName = 'Ctrl-]';

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

export interface RawTerminal {
  /** Whether standard input is a terminal. */
  readonly interactive: boolean;
  /** Single keys. Ends at the escape key, or at the end of input. */
  keys(): AsyncIterable<Uint8Array>;
  /** Undefined: unknown, as for terminals that report 0: serial lines, and some that a program opens. */
  size(): TerminalSize | undefined;
  onResize(listener: (size: TerminalSize) => void): void;
  /** Restores the terminal. */
  restore(): void;
}

/** `escapable`: whether the escape key ends the input. Input that is not a terminal is passed on unchanged. */
export function rawTerminal({ stdin, stdout }: Cli, { escapable }: { readonly escapable: boolean }): RawTerminal {
  const interactive = stdin.isTTY === true && stdin.setRawMode !== undefined;
  if (interactive) stdin.setRawMode?.(true);
  let resized: (() => void) | undefined;
  const size = (): TerminalSize | undefined =>
    stdout.columns && stdout.rows ? { columns: stdout.columns, rows: stdout.rows } : undefined;
  return {
    interactive,
    async *keys() {
      for await (const piece of stdin) {
        const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece;
        const end = escapable && interactive ? bytes.indexOf(escapeKey) : -1;
        if (end < 0) yield bytes;
        else {
          if (end > 0) yield bytes.subarray(0, end);
          return;
        }
      }
    },
    size,
    onResize(listener) {
      resized = () => {
        const now = size();
        if (now) listener(now);
      };
      stdout.on?.('resize', resized);
    },
    restore() {
      if (interactive) stdin.setRawMode?.(false);
      if (resized) stdout.off?.('resize', resized);
    },
  };
}
