// One run of ansible-playbook, in a process group of its own, which outlives this process: started here, or found again. It ends on
// request: SIGTERM to the group, after a while SIGKILL, also to what has left the group.

import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { type Clock, sleep } from '../../../../base/clock.ts';
import { system } from '../../../../base/system.ts';
import { launchScript } from './launch-script.ts';
import { ageMs, isRunning } from './process-table.ts';
import { type RunFolder, type RunState, runVariable } from './run-folder.ts';

export interface Launch {
  readonly program: string;
  readonly arguments: readonly string[];
  /** All that it gets: nothing of the server's own environment, which may hold secrets. */
  readonly environment: Readonly<Record<string, string>>;
}

/** How often it is looked at. Its end is seen at once only by the process that started it. */
const lookMs = 500;

export interface Watching {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Called at each look while it runs. */
  readonly look: () => Promise<void>;
}

export class PlaybookRun {
  readonly #folder: RunFolder;
  readonly #clock: Clock;
  readonly #stopMs: number;
  /** Aborts when the child of this process ends. */
  #childEnded: AbortSignal | undefined;

  constructor(folder: RunFolder, { clock, stopMs }: { readonly clock: Clock; readonly stopMs: number }) {
    this.#folder = folder;
    this.#clock = clock;
    this.#stopMs = stopMs;
  }

  /** The folder is prepared. Resolves when it can be found again. */
  async launch({ program, arguments: words, environment }: Launch): Promise<void> {
    const ended = new AbortController();
    const { path } = this.#folder;
    const child = spawn('/bin/sh', ['-c', launchScript, 'berth-spare', path, program, ...words], {
      cwd: path,
      detached: true,
      stdio: 'ignore',
      env: { ...environment, [runVariable]: path },
    });
    child.once('exit', () => ended.abort());
    child.unref();
    this.#childEnded = ended.signal;
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
  }

  state(): Promise<RunState> {
    return this.#folder.state();
  }

  /** Resolves with how it ended, or with its present state when `signal` aborts. A run that is older than `timeoutMs` is stopped. */
  async end({ timeoutMs, signal, look }: Watching): Promise<RunState> {
    const child = this.#childEnded;
    const woken = child === undefined ? signal : AbortSignal.any([signal, child]);
    for (;;) {
      const state = await this.state();
      if (state.is === 'ended') await this.#outputWritten();
      if (state.is !== 'running' || signal.aborted) return state;
      if (state.id !== undefined && (await ageMs(state.id)) > timeoutMs) {
        await this.stop(`it ran for longer than ${Math.round(timeoutMs / 1000)} s and was ended`);
        continue;
      }
      await look();
      await sleep(this.#clock, lookMs, child?.aborted === true ? signal : woken);
    }
  }

  /** Resolves when nothing of it runs any more. `why` is kept: it says how the run ended. */
  async stop(why: string): Promise<void> {
    // On a full disk it ends too, without a reason.
    await writeFile(this.#folder.at('stopped'), why, { mode: 0o600 }).catch(() => {});
    await this.#signal('SIGTERM');
    const deadlineMs = this.#clock.monotonicMs() + this.#stopMs;
    while ((await this.#isAlive()) && this.#clock.monotonicMs() < deadlineMs)
      await sleep(this.#clock, Math.min(lookMs, this.#stopMs));
    while (await this.#isAlive()) {
      await this.#signal('SIGKILL');
      await sleep(this.#clock, 100);
    }
  }

  async stopped(): Promise<string | undefined> {
    return readFile(this.#folder.at('stopped'), 'utf8').catch(() => undefined); // it was not
  }

  /** What it started may hold its output open for long: then the output is not waited for. */
  async #outputWritten(): Promise<void> {
    for (let i = 0; i < 20 && (await this.#folder.isShellRunning()); i++) await sleep(this.#clock, 50);
  }

  async #isAlive(): Promise<boolean> {
    const living = await Promise.all((await this.#folder.processes()).map(isRunning));
    return living.includes(true);
  }

  async #signal(signal: NodeJS.Signals): Promise<void> {
    const state = await this.state();
    const leader = state.is === 'running' ? state.id : undefined;
    if (leader !== undefined) system.signal(-leader.pid, signal);
    for (const { pid, group } of await this.#folder.processes()) if (group !== leader?.pid) system.signal(pid, signal);
  }
}
