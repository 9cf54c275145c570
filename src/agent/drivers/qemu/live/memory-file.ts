// The memory of a machine that is suspended to disk: the migration stream of QEMU, which the agent writes to a file and reads from it. QEMU itself
// has no access to the file.

import { createReadStream } from 'node:fs';
import { constants, type FileHandle, open } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type Clock, sleep } from '../../../../base/clock.ts';
import { isRecord } from '../../../../base/is-record.ts';
import { connectSocket } from '../../../host/connect-socket.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { socketFolder } from '../../../host/guest-user.ts';
import type { RunMemory } from '../../guest-life/hypervisor.ts';
import type { Qmp } from '../qmp.ts';
import { volumeAddresses } from './machine-parts.ts';
import { moveSocket, openSockets } from './move-sockets.ts';

const name = 'saved';
const lookMs = 20;
/** QEMU's own limit is 128 MiB a second. */
const unlimited = 2 ** 40;

export interface MemoryFileParts {
  readonly directory: string;
  readonly clock: Clock;
  session(): Qmp;
  /** The state of the machine has changed. */
  look(): void;
  giveUp(): Promise<void>;
}

export function createMemoryFile({ directory, clock, session, look, giveUp }: MemoryFileParts): RunMemory {
  /** Resolves when the stream is complete. */
  const untilCompleted = async (what: string, signal: AbortSignal): Promise<void> => {
    for (;;) {
      signal.throwIfAborted();
      const { status, 'error-desc': why } = fieldsOf(await session().execute('query-migrate'));
      if (status === 'completed') return;
      if (status === 'failed' || status === 'cancelled')
        throw new DriverError('HypervisorFailed', `${what}: ${typeof why === 'string' ? why : 'QEMU says no reason'}`);
      await sleep(clock, lookMs, signal);
    }
  };
  return {
    async save(path, signal) {
      const addresses = await volumeAddresses(session());
      const folder = await socketFolder(directory);
      const { O_CREAT, O_TRUNC, O_WRONLY, O_NOFOLLOW } = constants;
      const file = await open(path, O_CREAT | O_TRUNC | O_WRONLY | O_NOFOLLOW, 0o600);
      const written = Promise.withResolvers<void>();
      written.promise.catch(() => {}); // QEMU may fail first
      try {
        const sockets = await openSockets({ directory, folder }, [name], (socket) => {
          write(socket, file).then(written.resolve, written.reject);
        });
        try {
          await setCapabilities(session());
          await session().execute('migrate-set-parameters', { 'max-bandwidth': unlimited });
          await session().execute('migrate', { uri: `unix:${join(folder, moveSocket(name))}` });
          const completed = untilCompleted('its memory cannot be saved', signal);
          await Promise.all([Promise.race([completed, failure(written.promise, completed)]), written.promise]);
        } finally {
          await sockets.close();
        }
        await file.sync();
      } finally {
        await file.close();
      }
      return addresses;
    },
    giveUp,
    async load(path, signal) {
      const folder = await socketFolder(directory);
      await setCapabilities(session());
      await session().execute('migrate-incoming', { uri: `unix:${join(folder, moveSocket(name))}` });
      const socket = await connectSocket(join(directory, folder, moveSocket(name)));
      await pipeline(createReadStream(path), socket, { signal });
      await untilCompleted('its memory cannot be restored', signal);
      look();
    },
  };
}

/** QEMU waits while its stream is not read: what cannot be written has to end the wait. */
async function failure(written: Promise<void>, completed: Promise<void>): Promise<void> {
  await written;
  return completed;
}

async function write(socket: Socket, file: FileHandle): Promise<void> {
  try {
    for await (const chunk of socket) await file.appendFile(chunk as Uint8Array); // a socket without an encoding has bytes
  } finally {
    socket.destroy();
  }
}

/** A file answers nothing, and nothing has to be prepared for a hand-over. */
async function setCapabilities(qmp: Qmp): Promise<void> {
  const capabilities = [
    { capability: 'events', state: true },
    ...['return-path', 'pause-before-switchover', 'auto-converge'].map((capability) => ({ capability, state: false })),
  ];
  await qmp.execute('migrate-set-capabilities', { capabilities });
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}
