// Runs a command in a virtual machine through its guest agent. The agent takes all input before the command begins, and returns all output after
// its end: terminals and live output need ssh.

import type { ExecRequest } from '../../../../api/access-protocol.ts';
import { type Clock, sleep } from '../../../../base/clock.ts';
import { isRecord } from '../../../../base/is-record.ts';
import type { ExecOutput, GuestCommand } from '../../access.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { NeedsSsh } from '../../needs-ssh.ts';
import { GuestAgentError, type GuestAgentTalk } from './guest-agent.ts';

const inputBytesMax = 1024 * 1024;
/** The first delays are short, because most commands are. */
const lookMs = { first: 20, most: 500 };
/** Ten seconds at most: a process that still runs then cannot be killed from here. */
const looksAfterKillMax = 20;

/** `release` is called when the agent is no longer needed. Throws `DriverError` `NotPossible`. */
export async function runByGuestAgent(
  talk: GuestAgentTalk,
  request: ExecRequest,
  { clock, release }: { readonly clock: Clock; readonly release: () => void },
): Promise<GuestCommand> {
  if (request.terminal !== undefined) throw new NeedsSsh('the guest agent has no terminals: use "berth ssh"');
  const command = new AgentCommand(talk, request, clock);
  await command.start(release);
  return command;
}

class AgentCommand implements GuestCommand {
  readonly exit: GuestCommand['exit'];
  readonly #talk: GuestAgentTalk;
  readonly #request: ExecRequest;
  readonly #clock: Clock;
  readonly #input: Uint8Array[] = [];
  readonly #inputEnded = Promise.withResolvers<void>();
  readonly #killed = new AbortController();
  readonly #begun = Promise.withResolvers<void>();
  readonly #done = Promise.withResolvers<Ended>();
  #inputBytes = 0;
  #pid: number | undefined;

  constructor(talk: GuestAgentTalk, request: ExecRequest, clock: Clock) {
    this.#talk = talk;
    this.#request = request;
    this.#clock = clock;
    this.exit = this.#done.promise.then(({ code, signal }) => ({ code, ...(signal === undefined ? {} : { signal }) }));
    // The caller that started the command reads the error from `start` or from `exit`.
    this.#done.promise.catch(() => {});
    this.exit.catch(() => {});
    if (!request.stdin) this.#inputEnded.resolve();
  }

  /** Resolves when the command has begun, or waits for its input. Refuses a command that cannot be started before there is a session for it. */
  async start(release: () => void): Promise<void> {
    const ended = this.#run().finally(release);
    ended.then(this.#done.resolve, (error: unknown) => this.#done.reject(asRefusal(error)));
    if (!this.#request.stdin) {
      await Promise.race([this.#done.promise, this.#begun.promise]);
      return;
    }
    await this.#talk.ask('guest-ping').catch((error: unknown) => {
      this.#killed.abort();
      throw asRefusal(error);
    });
  }

  async *output(): AsyncGenerator<ExecOutput> {
    const ended = await this.#done.promise.catch(() => undefined); // `exit` reports it
    yield* ended?.output ?? [];
  }

  write(data: Uint8Array): Promise<void> {
    this.#inputBytes += data.length;
    if (this.#inputBytes > inputBytesMax) {
      this.#done.reject(
        new DriverError(
          'NotPossible',
          `the guest agent takes at most ${inputBytesMax} bytes of input: use "berth ssh"`,
        ),
      );
      this.#killed.abort();
    } else this.#input.push(data);
    return Promise.resolve();
  }

  endInput(): void {
    this.#inputEnded.resolve();
  }

  resize(): Promise<void> {
    return Promise.resolve();
  }

  kill(): void {
    this.#killed.abort();
    if (this.#pid !== undefined) this.#end(this.#pid);
  }

  async #run(): Promise<Ended> {
    const { signal } = this.#killed;
    if (this.#request.stdin) await Promise.race([this.#inputEnded.promise, aborted(signal)]);
    if (signal.aborted) return { code: 137, output: [] };
    const pid = await this.#startProcess();
    this.#pid = pid;
    this.#begun.resolve();
    if (signal.aborted) this.#end(pid); // killed while the agent started it
    let looksAfterKill = 0;
    for (let waitMs = lookMs.first; ; waitMs = Math.min(lookMs.most, waitMs * 1.5)) {
      const ended = endedOf(await this.#talk.ask('guest-exec-status', { pid }));
      if (ended !== undefined) return ended;
      if (signal.aborted && ++looksAfterKill > looksAfterKillMax) return { code: 137, output: [] };
      await sleep(this.#clock, waitMs);
    }
  }

  async #startProcess(): Promise<number> {
    const started = await this.#talk.ask('guest-exec', {
      ...wordsOf(this.#request),
      env: Object.entries(this.#request.env ?? {}).map(([name, value]) => `${name}=${value}`),
      'capture-output': true,
      ...(this.#inputBytes === 0 ? {} : { 'input-data': Buffer.concat(this.#input).toString('base64') }),
    });
    if (isRecord(started) && typeof started['pid'] === 'number') return started['pid'];
    throw new GuestAgentError('the guest agent did not say which process it started');
  }

  /** Kills the process with the guest's own program, if the guest has one. */
  #end(pid: number): void {
    this.#talk.ask('guest-exec', { path: '/bin/kill', arg: ['-KILL', String(pid)] }).catch(() => {}); // without it, the process runs on
  }
}

const asRefusal = (error: unknown): unknown =>
  error instanceof GuestAgentError ? new DriverError('NotPossible', error.message) : error;

interface Ended {
  readonly code: number;
  readonly signal?: number;
  readonly output: readonly ExecOutput[];
}

/** `guest-exec` finds programs in the agent's PATH, and has no working directory. */
function wordsOf({ command, workingDirectory }: ExecRequest): { path: string; arg: readonly string[] } {
  const [path = '', ...arg] = command;
  if (workingDirectory === undefined) return { path, arg };
  return { path: '/bin/sh', arg: ['-c', 'cd -- "$1" && shift && exec "$@"', 'sh', workingDirectory, ...command] };
}

/** Undefined: the command runs. */
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
