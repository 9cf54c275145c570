// Connections of which a machine takes only one at a time, shared by all who want to say something there: open while anybody uses it.

import type { Socket } from 'node:net';

export interface SharedSockets {
  /** The connection of this machine, opened if there is none. */
  use(instanceId: string): Promise<SocketUse>;
}

export interface SocketUse {
  readonly socket: Socket;
  /** Once for each use; the last one closes the connection. */
  release(): void;
}

/** `prepare` runs once for each connection, before anybody gets it. */
export function shareSockets(
  open: (instanceId: string) => Promise<Socket>,
  prepare: (socket: Socket) => void = () => {},
): SharedSockets {
  const shared = new Map<string, { readonly socket: Promise<Socket>; users: number }>();
  return {
    async use(instanceId) {
      let one = shared.get(instanceId);
      if (one === undefined) {
        const opening = open(instanceId);
        const made = { socket: opening, users: 0 };
        one = made;
        shared.set(instanceId, made);
        const forget = (): void => {
          if (shared.get(instanceId) === made) shared.delete(instanceId);
        };
        opening.then((socket) => {
          socket.on('error', () => {}); // its end is told by 'close'
          socket.once('close', forget);
          prepare(socket);
        }, forget);
      }
      const held = one;
      held.users += 1;
      const leave = (socket?: Socket): void => {
        held.users -= 1;
        if (held.users > 0) return;
        if (shared.get(instanceId) === held) shared.delete(instanceId); // its close is told later
        socket?.destroy();
      };
      try {
        const socket = await held.socket;
        let released = false;
        return {
          socket,
          release() {
            if (released) return;
            released = true;
            leave(socket);
          },
        };
      } catch (error) {
        leave();
        throw error;
      }
    },
  };
}
