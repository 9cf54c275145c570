// Runs commands in groups of containers, and copies files from and to them, through the engine.

import type { Readable } from 'node:stream';
import { drained } from '../../../base/drained.ts';
import type { ExecOutput, GuestAccess, GuestCommand } from '../access.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { GuestsInside } from '../guest-life/hypervisor.ts';
import { containerName } from './container-config.ts';
import { copyCommand } from './copy.ts';
import type { Engine } from './engine.ts';
import { imageHealthOf as healthOf } from './group-state.ts';
import { EngineError } from './engine-http.ts';
import type { Execution } from './exec.ts';

/** `checkHealth` makes a health check that the engine does not make by itself. */
export function groupAccess(
  engine: Engine,
  { running }: GuestsInside,
  checkHealth: (container: string) => Promise<void> = () => Promise.resolve(),
): GuestAccess {
  /** The engine's name of the requested container; default: the first container. */
  const containerOf = (instanceId: string, asked: string | undefined): string => {
    const names = running(instanceId).record.containers ?? [];
    const name = asked ?? names[0] ?? '';
    if (names.includes(name)) return containerName(instanceId, name);
    throw new DriverError('NotPossible', `it has no container "${name}"; it has: ${names.join(', ')}`);
  };
  return {
    async imageHealth(instanceId, asked) {
      const name = containerOf(instanceId, asked);
      await checkHealth(name);
      return healthOf(await engine.inspect(name));
    },
    copy: (instanceId, { container, ...asked }) =>
      Promise.resolve(copyCommand(engine, { container: containerOf(instanceId, container), ...asked })),
    async exec(instanceId, { command, env = {}, terminal, workingDirectory, container, stdin }) {
      const name = containerOf(instanceId, container);
      try {
        const execution = await engine.exec(name, {
          command,
          env,
          tty: terminal !== undefined,
          stdin,
          ...(workingDirectory === undefined ? {} : { workingDirectory }),
        });
        if (terminal !== undefined) await execution.resize(terminal).catch(() => {}); // it may have ended already
        return commandOf(execution);
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        throw new DriverError('NotPossible', `the engine does not run ${command[0] ?? ''}: ${error.message}`, error);
      }
    },
  };
}

function commandOf({ stream, errors, resize, exitCode }: Execution): GuestCommand {
  const exit = Promise.withResolvers<{ readonly code: number }>();
  exit.promise.catch(() => {}); // a caller that awaits it gets the error
  stream.on('error', () => {}); // `output` reports it, or the stream has ended
  return {
    async *output() {
      try {
        yield* merged([
          { stream: 'stdout', from: stream },
          { stream: 'stderr', from: errors },
        ]);
        exit.resolve({ code: await exitCode() });
      } catch (error) {
        exit.reject(error);
      }
    },
    async write(input) {
      if (stream.writableEnded || stream.destroyed) return; // the command no longer reads
      if (!stream.write(input)) await drained(stream);
    },
    endInput: () => void stream.end(),
    resize: (size) => resize(size).catch(() => {}), // it may have ended already
    exit: exit.promise,
    // The engine cannot end a command; most commands end when their connection closes.
    kill: () => void stream.destroy(),
    endable: false,
  };
}

/** Pieces of all sources in the order of arrival, until all have ended. */
async function* merged(
  sources: readonly { readonly stream: ExecOutput['stream']; readonly from: Readable }[],
): AsyncGenerator<ExecOutput> {
  const nextOf = (source: Source): Promise<Arrival> => {
    const next = source.pieces.next().then(({ value, done }) => ({ source, data: done === true ? undefined : value }));
    next.catch(() => {}); // reported when it is awaited below: the reader may be busy now
    return next;
  };
  const waiting = new Map<Source, Promise<Arrival>>();
  for (const { stream, from } of sources) {
    const source: Source = { stream, pieces: from[Symbol.asyncIterator]() };
    waiting.set(source, nextOf(source));
  }
  while (waiting.size > 0) {
    const { source, data } = await Promise.race(waiting.values());
    if (data === undefined) waiting.delete(source);
    else {
      waiting.set(source, nextOf(source));
      yield { stream: source.stream, data };
    }
  }
}

interface Source {
  readonly stream: ExecOutput['stream'];
  readonly pieces: AsyncIterator<Uint8Array>;
}

interface Arrival {
  readonly source: Source;
  /** Undefined: the source has ended. */
  readonly data: Uint8Array | undefined;
}
