// Runs a program in a running container, with its input and output on one connection. The owner of the stream must end it.

import { Duplex, PassThrough, type Readable } from 'node:stream';
import { Type } from 'typebox';
import { type Clock, sleep } from '../../../base/clock.ts';
import { drained } from '../../../base/drained.ts';
import { EngineError, type EngineHttp } from './engine-http.ts';
import { frameReader } from './frames.ts';

export interface ExecCall {
  readonly command: readonly string[];
  /** With a terminal there is one output; without, standard error is separate. */
  readonly tty: boolean;
  readonly env: Readonly<Record<string, string>>;
  /** Whether the program gets input. */
  readonly stdin: boolean;
  /** Default: the container's. */
  readonly workingDirectory?: string;
}

export interface Execution {
  /** Writes go to the program's input, and `end` closes it. Reads return its output, until the program and all its children have closed it. */
  readonly stream: Duplex;
  /** Must be read, or discarded with `resume()`: otherwise a program that writes much to it blocks. Empty with a terminal. */
  readonly errors: Readable;
  resize(size: { readonly columns: number; readonly rows: number }): Promise<void>;
  /** Resolves when the program has ended. To be called after the end of the stream. Throws `EngineError`. */
  exitCode(): Promise<number>;
}

const Created = Type.Object({ Id: Type.String({ pattern: '^[0-9a-f]{1,128}$' }) });
const Inspected = Type.Object({
  Running: Type.Boolean(),
  ExitCode: Type.Optional(Type.Union([Type.Integer(), Type.Null()])),
});

export async function startExecution(
  { http, clock, container }: { readonly http: EngineHttp; readonly clock: Clock; readonly container: string },
  { command, tty, env, stdin, workingDirectory }: ExecCall,
): Promise<Execution> {
  const { Id: id } = await http.json(Created, {
    method: 'POST',
    path: `/containers/${encodeURIComponent(container)}/exec`,
    body: {
      AttachStdin: stdin,
      AttachStdout: true,
      AttachStderr: true,
      Tty: tty,
      Cmd: command,
      ...(workingDirectory === undefined ? {} : { WorkingDir: workingDirectory }),
      Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    },
  });
  const start = { method: 'POST', path: `/exec/${id}/start`, body: { Detach: false, Tty: tty } } as const;
  const socket = await http.hijack(start);
  const errors = new PassThrough();
  if (tty) errors.end();
  return {
    stream: tty ? socket : withoutFrames(socket, errors),
    errors,
    // podman answers 201, Docker 200.
    resize: ({ columns, rows }) =>
      http.done({ method: 'POST', path: `/exec/${id}/resize`, query: { w: String(columns), h: String(rows) } }),
    async exitCode() {
      // podman answers when the program has ended, Docker at once.
      const call = { method: 'GET', path: `/exec/${id}/json`, timeoutMs: 0 } as const;
      for (let delayMs = exitPollMs; ; delayMs = Math.min(2 * delayMs, exitPollMsMax)) {
        const { Running, ExitCode } = await http.json(Inspected, call);
        if (!Running && typeof ExitCode === 'number') return ExitCode;
        await sleep(clock, delayMs); // no event is reliable: podman's comes before the exit code is known
      }
    },
  };
}

const exitPollMs = 50;
/** A program that has closed its outputs may run for days. */
const exitPollMsMax = 2_000;

function withoutFrames(socket: Duplex, errors: PassThrough): Duplex {
  const reader = frameReader();
  let wake = (): void => {};
  const stream = new Duplex({
    write(data, _encoding, done) {
      socket.write(data, done);
    },
    final(done) {
      socket.end(done);
    },
    read() {
      wake();
    },
    destroy(error, done) {
      socket.destroy();
      errors.destroy();
      done(error);
    },
  });
  const pump = async (): Promise<void> => {
    for await (const piece of socket) {
      if (!Buffer.isBuffer(piece)) continue;
      for (const { output, data } of reader.push(piece)) {
        if (output === 'stderr') {
          if (!errors.write(data)) await drained(errors);
        } else if (!stream.push(data)) await new Promise<void>((resolve) => (wake = resolve));
      }
    }
  };
  pump().then(
    () => {
      stream.push(null);
      errors.end();
    },
    (error: unknown) =>
      stream.destroy(error instanceof Error ? error : new EngineError(`an execution broke off: ${String(error)}`)),
  );
  return stream;
}
