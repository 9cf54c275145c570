// What the crucible asks of the operating system: short commands that must succeed, and processes that must not outlive it.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** Runs a command to its end; throws with what it said when it fails. */
export async function command(program: string, ...args: readonly string[]): Promise<string> {
  try {
    return (await execute(program, args, { maxBuffer: 256 * 1024 * 1024 })).stdout;
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    throw new Error(`"${program} ${args.join(' ')}" failed: ${said || String(error)}`, { cause: error });
  }
}

export interface ProcessSpec {
  readonly name: string;
  /** Where its network is: /run/netns/<machine>; missing: where the runner's is. */
  readonly machine?: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  /** Appended to: what it says over all its lives. */
  readonly logFile: string;
  /** Called as each life of it begins; what it returns, at the end of that life. */
  readonly onStart?: () => () => void;
}

/** One program that is started, killed, stopped and started again. Signals reach its children, too. */
export class Daemon {
  readonly name: string;
  readonly #spec: ProcessSpec;
  #child: ChildProcess | undefined;
  paused = false;

  constructor(spec: ProcessSpec) {
    this.name = spec.name;
    this.#spec = spec;
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Processes that it has started, and theirs. */
  descendants(): number[] {
    const pid = this.#child?.pid;
    return pid === undefined ? [] : descendantsOf(pid);
  }

  start(): void {
    if (this.running) return;
    this.paused = false;
    const { machine, argv, cwd, logFile, onStart } = this.#spec;
    const words = machine === undefined ? argv : ['nsenter', `--net=/run/netns/${machine}`, ...argv];
    const [program = '', ...args] = words;
    const log = openSync(logFile, 'a');
    const onEnd = onStart?.();
    const child = spawn(program, args, { cwd, stdio: ['ignore', log, log] });
    closeSync(log);
    child.on('exit', (code, signal) => {
      onEnd?.();
      appendFileSync(logFile, `-- ended: ${signal ?? code}\n`);
    });
    child.on('error', (error) => appendFileSync(logFile, `-- cannot start: ${error.message}\n`));
    this.#child = child;
  }

  /** SIGKILL to it alone: its children, if any, see it die. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.resume();
    await this.#end(signal);
  }

  pause(): void {
    if (!this.running || this.paused) return;
    this.paused = true;
    for (const pid of this.#family()) signalIfThere(pid, 'SIGSTOP');
    for (const pid of this.#family()) signalIfThere(pid, 'SIGSTOP'); // those born while the first were stopped
  }

  /** While it is paused: resolves when none of its threads runs, not even in the kernel. What was under way there is over then. */
  async still(): Promise<void> {
    while (!this.#family().every(isStill)) await new Promise((resolve) => setTimeout(resolve, 5));
  }

  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    for (const pid of this.#family().reverse()) signalIfThere(pid, 'SIGCONT');
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (!child || !this.running) return;
    const exited = once(child, 'exit');
    const family = this.paused ? this.#family() : [];
    child.kill(signal);
    for (const pid of family.slice(1)) signalIfThere(pid, 'SIGCONT');
    this.paused = false;
    await exited;
  }

  #family(): number[] {
    const pid = this.#child?.pid;
    return pid === undefined ? [] : [pid, ...descendantsOf(pid)];
  }
}

function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

/** Whether all its threads are stopped, or have ended. */
function isStill(pid: number): boolean {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    return threads.every((thread) => /^[TtZX]?$/.test(statOf(`${pid}/task/${thread}`)?.state ?? ''));
  } catch {
    return true;
  }
}

/** Of a process or a thread under /proc; undefined: it has ended. */
function statOf(path: string): { readonly state: string; readonly parent: number } | undefined {
  try {
    // "pid (name) state parent ..."; the name may hold anything.
    const stat = readFileSync(`/proc/${path}/stat`, 'utf8');
    const [state = '', parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}

/** Parents before their children. */
function descendantsOf(pid: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    const parent = /^\d+$/.test(name) ? statOf(name)?.parent : undefined;
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const found: number[] = [];
  for (let next = children.get(pid) ?? []; next.length > 0; next = next.flatMap((each) => children.get(each) ?? []))
    found.push(...next);
  return found;
}
