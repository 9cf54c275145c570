// What the agents of the crucible and the world of their guests say to each other: JSON lines over a unix socket. The socket stands for
// a host's own hypervisor, so no fault of the network is ever between the two.

import { createInterface } from 'node:readline';
import type { Socket } from 'node:net';
import type { Reports } from '../../src/api/agent-protocol.ts';
import type { Guest, GuestSpec } from '../../src/agent/drivers/driver.ts';
import type { DriverErrorCode } from '../../src/agent/host/driver-error.ts';

export type Act =
  | { readonly do: 'create'; readonly spec: GuestSpec }
  | { readonly do: 'start'; readonly instanceId: string }
  | { readonly do: 'stop'; readonly instanceId: string; readonly graceMs: number }
  | { readonly do: 'remove'; readonly instanceId: string };

export type FromAgent =
  | { readonly type: 'hello'; readonly host: string }
  | { readonly type: 'act'; readonly id: number; readonly act: Act }
  | { readonly type: 'abort'; readonly id: number }
  /** A copy of what is about to be sent to the control plane. */
  | { readonly type: 'reports'; readonly reports: Reports };

export type FromWorld =
  | { readonly type: 'guests'; readonly guests: readonly Guest[] }
  | { readonly type: 'changed'; readonly instanceId: string; readonly guest: Guest | null }
  | {
      readonly type: 'done';
      readonly id: number;
      readonly error?: { readonly code: DriverErrorCode; readonly message: string };
    };

export function send(socket: Socket, message: FromAgent | FromWorld): void {
  if (!socket.destroyed) socket.write(`${JSON.stringify(message)}\n`);
}

/** Both ends are of one version: what arrives is what was sent. */
export function receive<Message extends FromAgent | FromWorld>(socket: Socket, take: (message: Message) => void): void {
  const lines = createInterface({ input: socket });
  lines.on('line', (line) => take(JSON.parse(line)));
  // An end like any other; `close` follows. The lines repeat their input's errors.
  for (const each of [socket, lines]) each.on('error', () => {});
}
