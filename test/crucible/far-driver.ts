// A driver whose guests live in another process, as those of QEMU do: what an agent of the crucible has for hands. When its agent dies,
// they are still there.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Driver, Guest } from '../../src/agent/drivers/driver.ts';
import { DriverError } from '../../src/agent/host/driver-error.ts';
import { type Act, type FromWorld, receive, send } from './guest-wire.ts';

export function createFarDriver(socketPath: string, host: string, onConnect: (socket: Socket) => void): Driver {
  const guests = new Map<string, Guest>();
  const listeners = new Set<(instanceId: string) => void>();
  const waiting = new Map<number, PromiseWithResolvers<void>>();
  let socket: Socket | undefined;
  let acts = 0;

  const lost = (): DriverError => new DriverError('Internal', 'the world of guests is gone');

  const recover = async (): Promise<void> => {
    const opened = connect(socketPath);
    await once(opened, 'connect');
    socket = opened;
    onConnect(opened);
    const known = Promise.withResolvers<void>();
    opened.on('close', () => {
      for (const { reject } of waiting.values()) reject(lost());
      waiting.clear();
      known.reject(lost());
    });
    receive<FromWorld>(opened, (message) => {
      switch (message.type) {
        case 'guests':
          for (const guest of message.guests) guests.set(guest.instanceId, guest);
          return known.resolve();
        case 'changed':
          if (message.guest === null) guests.delete(message.instanceId);
          else guests.set(message.instanceId, message.guest);
          for (const listener of listeners) listener(message.instanceId);
          return;
        case 'done': {
          const { id, error } = message;
          if (error) waiting.get(id)?.reject(new DriverError(error.code, error.message));
          else waiting.get(id)?.resolve();
          waiting.delete(id);
        }
      }
    });
    send(opened, { type: 'hello', host });
    await known.promise;
  };

  const perform = async (act: Act, signal?: AbortSignal): Promise<void> => {
    if (socket === undefined || socket.destroyed) throw lost();
    const to = socket;
    const id = ++acts;
    const outcome = Promise.withResolvers<void>();
    waiting.set(id, outcome);
    const abort = (): void => send(to, { type: 'abort', id });
    send(to, { type: 'act', id, act });
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
    try {
      await outcome.promise;
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  };

  return {
    name: 'fake',
    fingerprint: () => Promise.resolve({ available: true, accelerator: 'none', version: '1' }),
    recover,
    guests: () => [...guests.values()],
    watch(listener, signal) {
      if (signal.aborted) return;
      const each = (instanceId: string): void => listener(instanceId);
      listeners.add(each);
      signal.addEventListener('abort', () => listeners.delete(each), { once: true });
    },
    create: (spec, signal) => perform({ do: 'create', spec }, signal),
    start: (instanceId) => perform({ do: 'start', instanceId }),
    stop: (instanceId, graceMs) => perform({ do: 'stop', instanceId, graceMs }),
    remove: (instanceId) => perform({ do: 'remove', instanceId }),
    readLog: () => Promise.reject(new DriverError('NoSuchGuest', 'guests of the crucible have no console')),
    async close() {
      socket?.destroy();
    },
  };
}
