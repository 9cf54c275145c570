// The folder of one run of ansible-playbook: what it is given, and what is known of it. It is complete on the disk before the run starts,
// so that it is clear later whether there was a run.
//
//   prepared ──▶ process (who runs) ──▶ exit (how it ended)

import { mkdir, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isRecord } from '../../../../base/is-record.ts';
import { bootId, type FoundProcess, isRunning, type ProcessId, withVariable } from './process-table.ts';
import { progressPlugin, progressPluginSource } from './progress-plugin.ts';

/** Set for the run and all that it starts; its value is the folder. */
export const runVariable = 'BERTH_SPARE_RUN';

export type RunState =
  /** No run was ever started. */
  | { readonly is: 'absent' }
  /** `id` undefined: it starts at this moment. */
  | { readonly is: 'running'; readonly id: ProcessId | undefined }
  | { readonly is: 'ended'; readonly exitCode: number }
  /** It runs no more, and how it ended is not known: it was killed, or the machine restarted. */
  | { readonly is: 'lost' };

/** A line of the plugin. */
export type ProgressEvent = Readonly<Record<string, unknown>>;

export interface RunInput {
  readonly attempt: number;
  readonly inventory: string;
  readonly variables: string;
}

export class RunFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  at(name: string): string {
    return join(this.path, name);
  }

  async prepare({ attempt, inventory, variables }: RunInput): Promise<void> {
    await this.remove();
    for (const name of ['plugins', 'home', 'tmp']) await mkdir(this.at(name), { recursive: true, mode: 0o700 });
    const files = {
      'ansible.cfg': '',
      'inventory.yml': inventory,
      'variables.yml': variables,
      [`plugins/${progressPlugin}.py`]: progressPluginSource,
      progress: '',
      attempt: String(attempt),
      boot: await bootId(),
    };
    for (const [name, text] of Object.entries(files))
      await writeFile(this.at(name), text, { mode: 0o600, flush: true });
    for (const path of [this.path, dirname(this.path)]) await flushFolder(path);
  }

  /** Of the run that the folder is of; undefined: it is of none. */
  async attempt(): Promise<number | undefined> {
    const text = await readText(this.at('attempt'));
    return text === undefined ? undefined : Number(text);
  }

  async state(): Promise<RunState> {
    const boot = await readText(this.at('boot'));
    if (boot === undefined) return { is: 'absent' }; // it is the last that is written
    const id = processOf(await readText(this.at('process')));
    const runs = boot === (await bootId()) && (id === undefined ? await this.#isStarting() : await isRunning(id));
    // Read after that: a run that ends now has written it before.
    const exit = await readText(this.at('exit'));
    if (exit !== undefined) return { is: 'ended', exitCode: Number(exit) };
    if (runs) return { is: 'running', id };
    if (id !== undefined) return { is: 'lost' };
    return (await readText(this.at('process'))) === undefined ? { is: 'absent' } : this.state(); // it has started meanwhile
  }

  /** The shell outlives the program until the output is written. */
  async isShellRunning(): Promise<boolean> {
    const id = processOf(await readText(this.at('process')));
    return id !== undefined && (await isRunning(id));
  }

  /** All processes of the run, also those that left its process group. */
  processes(): Promise<FoundProcess[]> {
    return withVariable(`${runVariable}=${this.path}`);
  }

  /** Grows with each event. */
  async progressBytes(): Promise<number> {
    return (await stat(this.at('progress'))).size;
  }

  /** The events so far; what is cut off in the middle of a line is left out. */
  async progress(): Promise<ProgressEvent[]> {
    const lines = ((await readText(this.at('progress'))) ?? '').split('\n');
    return lines.map(eventOf).filter((event) => event !== undefined);
  }

  async output(): Promise<string> {
    return (await readText(this.at('output'))) ?? '';
  }

  /** After the end: what held secrets, and what only the run needed. The run does it itself unless it was killed. */
  async clear(): Promise<void> {
    for (const name of ['variables.yml', 'home', 'tmp']) await rm(this.at(name), { recursive: true, force: true });
  }

  async remove(): Promise<void> {
    await rm(this.at('boot'), { force: true }); // first: then a half of it is not taken for a run
    await rm(this.path, { recursive: true, force: true });
  }

  async #isStarting(): Promise<boolean> {
    return (await this.processes()).length > 0;
  }
}

function processOf(text: string | undefined): ProcessId | undefined {
  const [, pid, ticks] = /^(\d+) (\d+)$/.exec(text?.trim() ?? '') ?? [];
  return pid === undefined ? undefined : { pid: Number(pid), startTicks: Number(ticks) };
}

function eventOf(line: string): ProgressEvent | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined; // it is being written
  }
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

async function flushFolder(path: string): Promise<void> {
  const folder = await open(path);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
