// A command in a virtual machine, run by its guest agent. The agent takes all input before it begins and gives all output when it has ended:
// for a terminal, or to read along, there is ssh.

import type { ExecRequest } from '../../../../api/access-protocol.ts';
import { type Clock, sleep } from '../../../../base/clock.ts';
import { isRecord } from '../../../../base/is-record.ts';
import type { ExecOutput, GuestCommand } from '../../access.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { NeedsSsh } from '../../needs-ssh.ts';
import { GuestAgentError, type GuestAgentTalk } from './guest-agent.ts';

const inputBytesMax = 1024 * 1024;
/** Looked at often at first: most commands are short. */
const lookMs = { first: 20, most: 500 };
/** Ten seconds at most: what lives on then cannot be killed from here, and nobody waits for it. */
const looksAfterKillMax = 20;

/** `release` is called when the agent is needed no more. Throws `DriverError` `NotPossible`. */
export async function runByGuestAgent(
  talk: GuestAgentTalk,
  request: ExecRequest,
  { clock, release }: { readonly clock: Clock; readonly release: () => void },
): Promise<GuestCommand> {
  if (request.terminal !== undefined) throw new NeedsSsh('the guest agent has no terminals: use "berth ssh"');
  const input: Uint8Array[] = [];
  let inputBytes = 0;
  const inputEnded = Promise.withResolvers<void>();
  if (!request.stdin) inputEnded.resolve();
  const killed = new AbortController();
  const done = Promise.withResolvers<Ended>();
  done.promise.catch(() => {}); // who waits for the exit is told
  const begun = Promise.withResolvers<number>();
  begun.promise.catch(() => {}); // told by `done`
  let pid: number | undefined;

  const run = async (): Promise<Ended> => {
    if (request.stdin) await Promise.race([inputEnded.promise, aborted(killed.signal)]);
    if (killed.signal.aborted) return { code: 137, output: [] };
    const started = await talk.ask('guest-exec', {
      ...wordsOf(request),
      env: Object.entries(request.env ?? {}).map(([name, value]) => `${name}=${value}`),
      'capture-output': true,
      ...(inputBytes === 0 ? {} : { 'input-data': Buffer.concat(input).toString('base64') }),
    });
    pid = isRecord(started) && typeof started['pid'] === 'number' ? started['pid'] : undefined;
    if (pid === undefined) throw new GuestAgentError('the guest agent did not say which process it started');
    begun.resolve(pid);
    if (killed.signal.aborted) end(pid); // while the agent was starting it
    let looks = 0; // after it was to end
    for (let waitMs = lookMs.first; ; waitMs = Math.min(lookMs.most, waitMs * 1.5)) {
      const ended = endedOf(await talk.ask('guest-exec-status', { pid }));
      if (ended !== undefined) return ended;
      if (killed.signal.aborted && ++looks > looksAfterKillMax) return { code: 137, output: [] };
      await sleep(clock, waitMs);
    }
  };
  /** By the guest's own program, if it has one. */
  const end = (started: number): void => {
    talk.ask('guest-exec', { path: '/bin/kill', arg: ['-KILL', String(started)] }).catch(() => {}); // then it is left to the guest
  };
  const started = run().finally(release);
  started.then(done.resolve, (error: unknown) => done.reject(told(error)));
  // What cannot be started at all is refused before there is a session for it.
  if (request.stdin)
    await talk.ask('guest-ping').catch((error: unknown) => {
      killed.abort();
      throw told(error);
    });
  else await Promise.race([done.promise, begun.promise]);

  return {
    async *output() {
      const ended = await done.promise.catch(() => undefined); // told by `exit`
      yield* ended?.output ?? [];
    },
    write(data) {
      inputBytes += data.length;
      if (inputBytes > inputBytesMax) {
        done.reject(
          new DriverError(
            'NotPossible',
            `the guest agent takes at most ${inputBytesMax} bytes of input: use "berth ssh"`,
          ),
        );
        killed.abort();
      } else input.push(data);
      return Promise.resolve();
    },
    endInput: () => inputEnded.resolve(),
    resize: () => Promise.resolve(),
    exit: done.promise.then(({ code, signal }) => ({ code, ...(signal === undefined ? {} : { signal }) })),
    kill() {
      killed.abort();
      if (pid !== undefined) end(pid);
    },
  };
}

const told = (error: unknown): unknown =>
  error instanceof GuestAgentError ? new DriverError('NotPossible', error.message) : error;

interface Ended {
  readonly code: number;
  readonly signal?: number;
  readonly output: readonly ExecOutput[];
}

/** `guest-exec` looks programs up in the agent's PATH, and knows no working directory. */
function wordsOf({ command, workingDirectory }: ExecRequest): { path: string; arg: readonly string[] } {
  const [path = '', ...arg] = command;
  if (workingDirectory === undefined) return { path, arg };
  return { path: '/bin/sh', arg: ['-c', 'cd -- "$1" && shift && exec "$@"', 'sh', workingDirectory, ...command] };
}

/** Undefined: it runs. */
function endedOf(status: unknown): Ended | undefined {
  if (!isRecord(status)) throw new GuestAgentError('the guest agent does not say what became of the command');
  if (status['exited'] !== true) return undefined;
  if (status['out-truncated'] === true || status['err-truncated'] === true)
    throw new GuestAgentError(
      'the command wrote more than the guest agent keeps, and the rest is lost: use "berth ssh"',
    );
  const output: ExecOutput[] = [];
  for (const [stream, field] of [
    ['stdout', 'out-data'],
    ['stderr', 'err-data'],
  ] as const) {
    const data = status[field];
    if (typeof data === 'string' && data !== '') output.push({ stream, data: Buffer.from(data, 'base64') });
  }
  const signal = status['signal'];
  const code = status['exitcode'];
  if (typeof signal === 'number') return { code: 128 + signal, signal, output };
  return { code: typeof code === 'number' ? code : 0, output };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
