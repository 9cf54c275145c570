// The user's terminal, lent to a guest: what is typed goes to the guest as it is, until the key that ends it.

import type { Cli } from '../cli.ts';

/** Ctrl-], as telnet and virsh have it. */
const escapeKey = 0x1d;
export const escapeKeyName = 'Ctrl-]';

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

export interface RawTerminal {
  /** Whether there is somebody at it. */
  readonly interactive: boolean;
  /** Keys as they are typed. Ends at the escape key, or when there is no more input. */
  keys(): AsyncIterable<Uint8Array>;
  /** Undefined: nobody knows, as where a terminal says 0: serial lines, and some that a program opens. */
  size(): TerminalSize | undefined;
  onResize(listener: (size: TerminalSize) => void): void;
  /** Gives the terminal back. */
  restore(): void;
}

/** `escapable`: whether the escape key ends the input. Input that is no terminal is passed on as it is. */
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
