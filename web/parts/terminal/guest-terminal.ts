// GuestTerminal: a terminal at the console of a guest, or at a command in it. It connects again by itself after a break, from the byte it
// had; it never does after the guest or the command ended.

import { execStreams } from '../../../src/api/access-protocol.ts';
import { ApiError } from '../../../src/api/errors.ts';
import { carry, guestSocket, type SocketEnd, type Way } from '../../data/guest-socket.ts';
import { type OpenTerminal, openTerminal } from './open-terminal.ts';

export type LinkState =
  | { readonly state: 'connecting' | 'open' }
  /** It is tried again by itself. */
  | { readonly state: 'lost'; readonly why: string }
  | { readonly state: 'over'; readonly why: string; readonly bad: boolean };

interface Place {
  readonly name: string;
  readonly project: string;
  /** Absent: the serial console. */
  readonly command?: readonly string[];
  /** What is said when the host refuses: a browser is not told why. */
  readonly whyRefused: string;
}

const firstDelayMs = 500;
const delayMsMax = 15_000;
/** What the screen is filled with at first. */
const historyBytes = 16_384;

export class GuestTerminal {
  readonly #at: Place;
  readonly #tell: (state: LinkState) => void;
  readonly #shown: OpenTerminal;
  readonly #over = new AbortController();
  #socket: WebSocket | undefined;
  /** Of the console's log; of the output of the command. */
  #received: number | undefined;
  #session: string | undefined;
  #wasOpen = false;

  constructor(element: HTMLElement, at: Place, tell: (state: LinkState) => void) {
    this.#at = at;
    this.#tell = tell;
    this.#shown = openTerminal(element, (text) => this.#send(text));
    this.#shown.terminal.onResize((size) => this.#resize(size));
    // Tab and Escape belong to the guest, so that another key has to lead out.
    this.#shown.terminal.attachCustomKeyEventHandler((event) => {
      if (event.type !== 'keydown' || !event.shiftKey || event.key !== 'Escape') return true;
      this.#shown.terminal.blur();
      return false;
    });
    void this.#run();
  }

  focus(): void {
    this.#shown.terminal.focus();
  }

  close(): void {
    this.#over.abort();
    if (this.#at.command && this.#socket?.readyState === WebSocket.OPEN) this.#socket.send('{"type":"close"}');
    this.#socket?.close();
    this.#shown.close();
  }

  async #run(): Promise<void> {
    let delayMs = firstDelayMs;
    for (;;) {
      this.#tell({ state: 'connecting' });
      const ended = await this.#connect(() => (delayMs = firstDelayMs)).catch((error: unknown) => faultOf(error));
      if (this.#over.signal.aborted) return;
      this.#tell(ended);
      if (ended.state === 'over') return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, delayMs);
        this.#over.signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
      });
      if (this.#over.signal.aborted) return;
      delayMs = Math.min(delayMs * 2, delayMsMax);
    }
  }

  async #connect(onOpen: () => void): Promise<LinkState> {
    const { name, project, command, whyRefused } = this.#at;
    const socket = await guestSocket({ name, project, way: command ? 'exec' : 'console', query: this.#query() });
    if (this.#over.signal.aborted) {
      socket.close();
      return { state: 'over', why: '', bad: false };
    }
    this.#socket = socket;
    const end = await carry(socket, {
      opened: () => {
        onOpen();
        this.#wasOpen = true;
        if (command && this.#session === undefined) this.#begin(command);
        this.#tell({ state: 'open' });
      },
      bytes: (bytes) => this.#show(bytes),
      control: (message) => {
        if (message.type === 'offset') this.#received = message.offset;
        if (message.type === 'started') this.#session = message.session;
      },
    });
    // A host that was connected before may be refused only until the server has found it again.
    if (!end.opened && this.#wasOpen) return { state: 'lost', why: 'the host cannot be reached' };
    return stateAfter(end, whyRefused);
  }

  #query(): NonNullable<Way['query']> {
    if (this.#at.command) return this.#session ? { session: this.#session, received: this.#received ?? 0 } : {};
    return this.#received === undefined ? { history: historyBytes } : { offset: this.#received };
  }

  #begin(command: readonly string[]): void {
    const { cols: columns, rows } = this.#shown.terminal;
    this.#socket?.send(
      JSON.stringify({ command, env: { TERM: 'xterm-256color' }, stdin: true, terminal: { columns, rows } }),
    );
  }

  #show(bytes: Uint8Array): void {
    const output = this.#at.command ? bytes.subarray(1) : bytes;
    this.#received = (this.#received ?? 0) + output.length;
    this.#shown.terminal.write(output);
  }

  #send(text: string): void {
    if (this.#socket?.readyState !== WebSocket.OPEN) return; // keys that cannot be delivered are not kept: they would surprise later
    const bytes = new TextEncoder().encode(text);
    if (!this.#at.command) return this.#socket.send(bytes);
    const framed = new Uint8Array(bytes.length + 1);
    framed[0] = execStreams.stdin;
    framed.set(bytes, 1);
    this.#socket.send(framed);
  }

  #resize({ cols: columns, rows }: { readonly cols: number; readonly rows: number }): void {
    if (this.#at.command && this.#socket?.readyState === WebSocket.OPEN)
      this.#socket.send(JSON.stringify({ type: 'resize', columns, rows }));
  }
}

function stateAfter({ opened, last }: SocketEnd, whyRefused: string): LinkState {
  if (!opened) return { state: 'over', why: whyRefused, bad: true };
  switch (last?.type) {
    case 'exit':
      return {
        state: 'over',
        why: `The command ended with ${last.signal ? `signal ${last.signal}` : `code ${last.code}`}.`,
        bad: last.code !== 0,
      };
    case 'end':
      return { state: 'over', why: 'The guest ended.', bad: false };
    case 'error':
      return { state: 'over', why: last.message, bad: true };
    default:
      return { state: 'lost', why: 'the connection broke' };
  }
}

/** What the server says of a ticket is final; that it does not answer is not. */
function faultOf(error: unknown): LinkState {
  if (error instanceof ApiError && error.code !== 'Unavailable')
    return { state: 'over', why: error.message, bad: true };
  return { state: 'lost', why: error instanceof Error ? error.message : String(error) };
}
