// The world of guests as agents reach it. It lives in the runner, so that it outlives every agent and is the truth that checkers look at.

import { rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { once } from 'node:events';
import type { Driver } from '../../src/agent/drivers/driver.ts';
import { DriverError } from '../../src/agent/host/driver-error.ts';
import { createFakeDriver } from '../../src/agent/drivers/fake/driver.ts';
import type { FakeWorld } from '../../src/agent/drivers/fake/world.ts';
import type { Prng } from '../../src/base/prng.ts';
import type { SentReport } from '../../src/sim/checkers/checker.ts';
import { type Act, type FromAgent, receive, send } from './guest-wire.ts';

export interface WorldSocketOptions {
  readonly path: string;
  readonly world: FakeWorld;
  readonly prng: Prng;
  readonly onReport: (sent: SentReport) => void;
}

export async function openWorldSocket({ path, world, prng, onReport }: WorldSocketOptions): Promise<() => void> {
  const server: Server = createServer((socket) => {
    let host = '';
    let driver: Driver | undefined;
    const over = new AbortController();
    const acts = new Map<number, AbortController>();
    // An agent that is gone does nothing more; what it had begun stands as it is.
    socket.on('close', () => {
      over.abort();
      void driver?.close();
    });
    receive<FromAgent>(socket, (message) => {
      switch (message.type) {
        case 'hello': {
          host = message.host;
          const opened = createFakeDriver({ world, host, prng: prng.split() });
          driver = opened;
          const tell = (instanceId: string): void => {
            const guest = opened.guests().find((each) => each.instanceId === instanceId) ?? null;
            send(socket, { type: 'changed', instanceId, guest });
          };
          opened.watch(tell, over.signal);
          return send(socket, { type: 'guests', guests: opened.guests() });
        }
        case 'act': {
          if (driver === undefined) throw new Error('an agent acted before it said who it is');
          const { id, act } = message;
          const abort = new AbortController();
          acts.set(id, abort);
          perform(driver, act, abort.signal)
            .then(
              () => send(socket, { type: 'done', id }),
              (error: unknown) => {
                const { code, message: text } =
                  error instanceof DriverError ? error : new DriverError('Internal', String(error));
                send(socket, { type: 'done', id, error: { code, message: text } });
              },
            )
            .finally(() => acts.delete(id));
          return;
        }
        case 'abort':
          return acts.get(message.id)?.abort();
        case 'reports': {
          const { epoch, reports } = message.reports;
          for (const report of reports) onReport({ host, epoch, report });
        }
      }
    });
  });
  server.listen(path);
  await once(server, 'listening');
  return () => {
    server.close();
    rmSync(path, { force: true });
  };
}

function perform(driver: Driver, act: Act, signal: AbortSignal): Promise<void> {
  switch (act.do) {
    case 'create':
      return driver.create(act.spec, signal);
    case 'start':
      return driver.start(act.instanceId);
    case 'stop':
      return driver.stop(act.instanceId, act.graceMs);
    case 'remove':
      return driver.remove(act.instanceId);
  }
}
