// The playbooks of one provisioner: starts them for spares, finds those that an earlier server of this machine started, and ends them. A
// spare has at most one run for each action; a run is started only where none is found.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../../../base/clock.ts';
import { hiding } from '../../plain-line.ts';
import type { AnsibleConfig } from '../provisioner-config.ts';
import { readSecretFile } from '../secret-file.ts';
import { type Outcome, outcomeOf, progressOf } from './outcome.ts';
import {
  argumentsOf,
  environmentOf,
  inventoryOf,
  type PlainVariables,
  type PlaybookTarget,
  variablesOf,
} from './playbook-input.ts';
import { PlaybookRun } from './playbook-run.ts';
import { RunFolder } from './run-folder.ts';

export type Action = 'provision' | 'release';

export interface PlaybookOrder {
  readonly spareId: string;
  readonly action: Action;
  readonly attempt: number;
  readonly playbook: string;
  readonly target: PlaybookTarget;
  /** Of the spare. */
  readonly variables: PlainVariables;
}

export type PlaybookState =
  | { readonly is: 'absent' }
  | { readonly is: 'running'; readonly note: string | undefined }
  | ({ readonly is: 'ended' } & Outcome);

export interface PlaybooksParts {
  /** Of the configuration, for messages: `provisioners.metal.ansible`. */
  readonly field: string;
  /** Where the folders of runs are; kept over restarts. */
  readonly directory: string;
  readonly clock: Clock;
  /** Default: that of the PATH. */
  readonly program?: string;
}

/** The server has ended it before. */
const graceMs = 30_000;

export class Playbooks {
  readonly #config: AnsibleConfig;
  readonly #parts: PlaybooksParts;
  readonly #runs = new Map<string, PlaybookRun>();

  constructor(config: AnsibleConfig, parts: PlaybooksParts) {
    this.#config = config;
    this.#parts = parts;
  }

  /** There is no run of this action. Resolves when it can be found again. */
  async start({ spareId, action, attempt, playbook, target, variables }: PlaybookOrder): Promise<void> {
    const { directory, program = 'ansible-playbook' } = this.#parts;
    const { timeoutMs, stopMs } = this.#config;
    const config = { ...this.#config, playbook };
    const folder = this.#folder(spareId, action);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const others = { ...(await this.#secrets()), ...variables, berth_action: action };
    await folder.prepare({
      attempt,
      inventory: inventoryOf(target, config),
      variables: variablesOf({ own: config.variables ?? {}, others }),
    });
    await this.#run(spareId, action).launch({
      program: 'timeout', // of coreutils: for when no server is there to end it
      arguments: [
        `--kill-after=${secondsOf(stopMs)}`,
        secondsOf(timeoutMs + stopMs + graceMs),
        ...[program, ...argumentsOf(config, { folder, host: target.host })],
      ],
      environment: environmentOf(config, folder),
    });
  }

  /** Which attempt the run is of; undefined: there is none. */
  attempt(spareId: string, action: Action): Promise<number | undefined> {
    return this.#folder(spareId, action).attempt();
  }

  async state(spareId: string, action: Action): Promise<PlaybookState> {
    const folder = this.#folder(spareId, action);
    const state = await folder.state();
    if (state.is === 'absent') return { is: 'absent' };
    const events = await folder.progress();
    if (state.is === 'running') return { is: 'running', note: progressOf(events) };
    const stopped = await this.#run(spareId, action).stopped();
    const exitCode = state.is === 'ended' ? state.exitCode : undefined;
    const hide = hiding(Object.values(await this.#secrets().catch(() => ({})))); // a secret that is gone now was not shown then
    const output = await folder.output();
    return {
      is: 'ended',
      ...outcomeOf({ exitCode, events, output, hide, ...(stopped === undefined ? {} : { stopped }) }),
    };
  }

  /** Resolves when it has ended, or with the present state when `signal` aborts. Ends it when it runs for too long. */
  async end(
    spareId: string,
    action: Action,
    { signal, progress }: { readonly signal: AbortSignal; readonly progress: (note: string) => void },
  ): Promise<PlaybookState> {
    const { timeoutMs } = this.#config;
    const folder = this.#folder(spareId, action);
    let told: string | undefined;
    let readBytes = 0;
    const look = async (): Promise<void> => {
      const bytes = await folder.progressBytes();
      if (bytes === readBytes) return;
      readBytes = bytes;
      const note = progressOf(await folder.progress());
      if (note !== undefined && note !== told) progress((told = note));
    };
    const state = await this.#run(spareId, action).end({ timeoutMs, signal, look });
    if (state.is !== 'running') await folder.clear();
    return this.state(spareId, action);
  }

  /** Ends it if it runs. `why`: what its outcome says then. */
  async stop(spareId: string, action: Action, why: string): Promise<void> {
    if ((await this.#folder(spareId, action).state()).is === 'running') await this.#run(spareId, action).stop(why);
  }

  /** Nothing of the spare is kept. It does not run. */
  async forget(spareId: string): Promise<void> {
    for (const action of ['provision', 'release'] as const) {
      await this.#folder(spareId, action).remove();
      this.#runs.delete(`${spareId}.${action}`);
    }
  }

  #folder(spareId: string, action: Action): RunFolder {
    if (!/^[A-Za-z0-9_-]{1,100}$/.test(spareId)) throw new Error('the id of a spare has letters, digits, "_" and "-"');
    return new RunFolder(join(this.#parts.directory, `${spareId}.${action}`));
  }

  #run(spareId: string, action: Action): PlaybookRun {
    const key = `${spareId}.${action}`;
    let run = this.#runs.get(key);
    if (run === undefined) {
      const { stopMs } = this.#config;
      run = new PlaybookRun(this.#folder(spareId, action), { clock: this.#parts.clock, stopMs });
      this.#runs.set(key, run);
    }
    return run;
  }

  async #secrets(): Promise<Record<string, string>> {
    const secrets: Record<string, string> = {};
    for (const [name, path] of Object.entries(this.#config.secretVariables ?? {}))
      secrets[name] = await readSecretFile(path, `${this.#parts.field}.secretVariables.${name}`);
    return secrets;
  }
}

/** timeout(1) takes fractions. */
function secondsOf(ms: number): string {
  return `${ms / 1_000}s`;
}
