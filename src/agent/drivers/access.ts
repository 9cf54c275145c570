// The ways into a running guest that a driver may offer. Like the driver's other hands they do what they are told, to guests of its own only.

import type { Duplex } from 'node:stream';
import type { CopyRequest, ExecRequest } from '../../api/access-protocol.ts';

/** What a driver lacks is absent. All throw `DriverError`: `NoSuchGuest`, or `NotPossible` with the reason. */
export interface GuestAccess {
  /** Keys for the serial console. What the console says is in the guest's log. */
  typeInto?(instanceId: string): Promise<Keyboard>;
  /** Calls `listener` when the guest's log may have grown, until `signal` aborts. */
  watchLog?(instanceId: string, listener: () => void, signal: AbortSignal): void;
  /** A TCP connection to a port of the guest, as from the guest's own network. */
  dial?(instanceId: string, port: number): Promise<Duplex>;
  /**
   * Resolves once the guest itself, and nothing on the way to it, has accepted a TCP connection at this port. Aborting `signal` gives up.
   */
  reach?(instanceId: string, port: number, signal: AbortSignal): Promise<void>;
  /** What the HEALTHCHECK of the image says of a container, attempted now where the engine does not do so by itself; default: the first. */
  imageHealth?(instanceId: string, container?: string): Promise<ImageHealth>;
  /** The guest's screen, as an RFB server (RFC 6143) without a password. */
  screen?(instanceId: string): Promise<Duplex>;
  /**
   * The host's end of the runner's port, of a guest that was created with `runDisk`. One connection at a time; bytes that the guest writes
   * while none is open may be lost.
   */
  openRunner?(instanceId: string): Promise<Duplex>;
  /** Runs a command inside the guest. */
  exec?(instanceId: string, request: ExecRequest): Promise<GuestCommand>;
  /** Copies files from or to the guest, as a command does that reads or writes a tar archive. */
  copy?(instanceId: string, request: CopyRequest): Promise<GuestCommand>;
}

/** `none`: the image has no HEALTHCHECK. */
export type ImageHealth = 'none' | 'starting' | 'healthy' | 'unhealthy';

export interface Keyboard {
  /** Resolves when more may be written. Throws `NotPossible` when the other end takes no more. */
  type(keys: Uint8Array): Promise<void>;
  close(): void;
}

export interface ExecOutput {
  readonly stream: 'stdout' | 'stderr';
  readonly data: Uint8Array;
}

/** One command, from its start to its end. */
export interface GuestCommand {
  /** To be read once. The command may block while it is not read. */
  output(): AsyncIterable<ExecOutput>;
  /** Resolves when it takes more. */
  write(input: Uint8Array): Promise<void>;
  endInput(): void;
  resize(size: { readonly columns: number; readonly rows: number }): Promise<void>;
  /** After all output. Rejects with `DriverError` when it is not known how it ended. */
  readonly exit: Promise<{ readonly code: number; readonly signal?: number }>;
  /** Ends it as well as the guest lets us. */
  kill(): void;
  /** False: `kill` only lets go of it, and it may run on. */
  readonly endable?: false;
}
