// One command inside a guest, or one copy, over as many connections as it takes: when one breaks the command keeps
// running, and input and output resume at the same byte.

import type { ExecRequest } from '../../api/access-protocol.ts';
import { sleep } from '../../base/clock.ts';
import { describeError } from '../../base/log.ts';
import type { Cli } from '../cli.ts';
import { CommandError, exitCodes } from '../exit-codes.ts';
import { type GuestLine, mayComeBack, openGuestLine } from './guest-line.ts';
import type { Session } from '../session.ts';

/** From api/access-protocol.ts, which would load schemas. */
const streams = { stdin: 0, stdout: 1, stderr: 2 } as const;
const inputPieceBytes = 32 * 1024;
/** Input that was sent and may not have arrived. More than everything in transit to the host. */
const inputKeptBytes = 16 * 1024 * 1024;
const retryMs = 1_000;
/** As long as a host keeps a command without a client. */
const patienceMs = 10 * 60 * 1000;

export interface GuestCommandCall {
  readonly name: string;
  /** An `ExecRequest`, or a `CopyRequest`. */
  readonly request: object;
  /** Read only when the command has started. Absent: no input. */
  readonly input?: AsyncIterable<Uint8Array>;
  /** More is read when it resolves. */
  readonly take: (stream: 'stdout' | 'stderr', bytes: Uint8Array) => Promise<void> | void;
  /** Called with a listener for changes of the terminal's size. */
  readonly onResize?: (listener: (size: NonNullable<ExecRequest['terminal']>) => void) => void;
}

/**
 * The exit code. Throws `ApiError` when the command did not start, `CommandError` when its result is unknown. Ctrl-C
 * ends it.
 */
export async function runInGuest(cli: Cli, session: Session, call: GuestCommandCall): Promise<number> {
  const { name, request, take } = call;
  const open = (query: Readonly<Record<string, string | number>> = {}): Promise<GuestLine> =>
    openGuestLine(session, { name, way: 'exec', query });
  let line = await open();
  let resumable: string | undefined;
  let received = 0;
  const input = createInput();
  await line.tell(request);
  call.onResize?.((size) => void line.tell({ type: 'resize', ...size }));

  const listen = async (): Promise<number | undefined> => {
    for await (const message of line.messages()) {
      if (message instanceof Uint8Array) {
        await take(message[0] === streams.stderr ? 'stderr' : 'stdout', message.subarray(1));
        received += message.length - 1;
      } else if (message.type === 'started') {
        const first = resumable === undefined;
        resumable = message.session;
        await input.connected(line, message.inputBytes);
        if (first && call.input !== undefined) input.begin(call.input);
      } else if (message.type === 'exit') return message.code;
    }
    return undefined;
  };
  const interrupted = cli.interruption();
  const end = (): void => void line.tell({ type: 'close' }).then(() => line.end());
  interrupted.addEventListener('abort', end, { once: true });

  try {
    for (let brokeAtMs: number | undefined; ; ) {
      try {
        const code = await Promise.race([listen(), input.failed]);
        if (code !== undefined) {
          line.end();
          return code;
        }
      } catch (error) {
        if (error instanceof CommandError) end(); // the command must not continue with half of its input
        if (error instanceof CommandError || !mayComeBack(error)) throw error;
      }
      if (interrupted.aborted) return exitCodes.interrupted;
      input.disconnected();
      brokeAtMs ??= cli.clock.monotonicMs();
      if (resumable === undefined || cli.clock.monotonicMs() - brokeAtMs > patienceMs)
        throw new CommandError(exitCodes.internal, 'the connection broke, so the result of the command is unknown');
      cli.stderr.write('berth: the connection broke; trying again\n');
      await sleep(cli.clock, retryMs);
      try {
        line = await open({ session: resumable, received });
        brokeAtMs = undefined;
      } catch (error) {
        if (!mayComeBack(error)) throw error;
        cli.stderr.write(`berth: ${describeError(error)}\n`);
      }
    }
  } finally {
    interrupted.removeEventListener('abort', end);
  }
}

/** Input, kept until it has certainly arrived. */
function createInput() {
  const kept: Uint8Array[] = [];
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {}); // reported to later callers
  let keptFrom = 0;
  let written = 0;
  let ended = false;
  let line: GuestLine | undefined;
  let reconnected = Promise.withResolvers<GuestLine>();

  const keep = (piece: Uint8Array): void => {
    kept.push(piece);
    written += piece.length;
    while (written - keptFrom > inputKeptBytes && kept.length > 1) keptFrom += kept.shift()?.length ?? 0;
  };
  const say = async (bytes: Uint8Array): Promise<void> => {
    for (let at = 0; at < bytes.length; at += inputPieceBytes) {
      const to = line === undefined || line.over.aborted ? await reconnected.promise : line;
      const piece = bytes.subarray(at, at + inputPieceBytes);
      keep(piece); // before it is sent: if that fails, it is sent again
      await to.send(messageOf(piece));
    }
  };
  return {
    failed: failed.promise,
    begin(source: AsyncIterable<Uint8Array>): void {
      (async () => {
        for await (const bytes of source) await say(bytes);
        ended = true;
        await line?.tell({ type: 'end' });
      })().catch((cause: unknown) =>
        failed.reject(
          new CommandError(exitCodes.internal, `the input cannot be read: ${describeError(cause)}`, { cause }),
        ),
      );
    },
    disconnected(): void {
      line = undefined;
    },
    /** The host has received `bytes`: the rest is sent again, then new input. */
    async connected(to: GuestLine, bytes: number): Promise<void> {
      if (bytes < keptFrom)
        throw new CommandError(exitCodes.internal, `bytes ${bytes} to ${keptFrom} of the input were lost on the way`);
      let at = keptFrom;
      for (const piece of [...kept]) {
        const end = at + piece.length;
        if (end > bytes) await to.send(messageOf(piece.subarray(Math.max(0, bytes - at))));
        at = end;
      }
      line = to;
      reconnected.resolve(to);
      reconnected = Promise.withResolvers();
      if (ended) await to.tell({ type: 'end' });
    },
  };
}

function messageOf(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.of(streams.stdin), bytes]);
}
