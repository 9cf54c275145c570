// The machine: clock, timers, randomness, environment, process. The only file of src/ that touches them.

import { spawn } from 'node:child_process';
import { createHmac, randomBytes, randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import pino from 'pino';
import type { Clock } from './clock.ts';
import type { LogFields, Logger } from './log.ts';
import { type Prng, seededPrng } from './prng.ts';
import { createTextLogger, type LogFormat, type LogLevel } from './text-log.ts';

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer(delayMs, fire, options) {
    const timer = setTimeout(fire, delayMs);
    if (options?.background) timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

export function systemPrng(): Prng {
  return seededPrng(randomInt(0x1_0000_0000 - 1), randomBytes(8).toString('hex'));
}

/** `length` unguessable bytes, for keys and tokens. */
export function randomSecret(length: number): Buffer {
  return randomBytes(length);
}

export const systemFetch: typeof fetch = (...call) => fetch(...call);

export function environment(): Readonly<Record<string, string | undefined>> {
  return process.env;
}

export const system = {
  arguments: (): string[] => process.argv.slice(2),
  /** The running Node binary. */
  nodePath: (): string => process.execPath,
  /** Runs `run` once what is ready in this turn of the event loop has been handled: the moment to do many small things as one. */
  afterTurn(run: () => void): void {
    setImmediate(run);
  },
  /** Resolves once every promise callback that is ready now, and all that those make ready, has run. */
  turn: (): Promise<void> => new Promise((resolve) => setImmediate(resolve)),
  /**
   * As `turn`, for one who does little else than wait for the next and takes nothing from the system meanwhile: the system is asked once for many of
   * them. One call at a time.
   */
  turns(): () => Promise<void> {
    let next: (() => void) | undefined;
    let underWay = 0;
    const come = (): void => {
      underWay -= 1;
      const resume = next;
      next = undefined;
      resume?.();
    };
    return () =>
      new Promise((resolve) => {
        next = resolve;
        if (underWay === 0) for (; underWay < turnsAtOnce; underWay++) setImmediate(come);
      });
  },
  /** Calls `listener` with errors that nobody caught, instead of ending the process; the function it returns ends that. */
  onUncaught(listener: (error: unknown) => void): () => void {
    process.on('uncaughtException', listener);
    process.on('unhandledRejection', listener);
    return () => {
      process.off('uncaughtException', listener);
      process.off('unhandledRejection', listener);
    };
  },
  pid: (): number => process.pid,
  userId: (): number => process.getuid?.() ?? 0,
  workingDirectory: (): string => process.cwd(),
  architecture: (): string => process.arch,
  platform: (): string => process.platform,
  /** Collects what of V8's heap is young, and was made of late. Does nothing where V8 has no way to be asked. */
  collectYoung(): void {
    collector ??= findCollector();
    collector({ type: 'minor' });
  },
  /**
   * Gives back to the system what V8 took for the start and does not use any more. It stands still meanwhile, some 40 ms for 20 MiB, so it does nothing
   * where there is much: there it would free little.
   */
  releaseUnused(): void {
    if (process.memoryUsage().heapUsed > releaseBytesMax) return;
    collector ??= findCollector();
    collector({ type: 'major', flavor: 'last-resort' });
  },
  /** How long, since its start, this process has had nothing to do but wait for what comes, in milliseconds. Never falls. */
  idleMs: (): number => performance.nodeTiming.idleTime,
  residentBytes: (): number => process.memoryUsage.rss(),
  /** How many files and connections this process may have open (RLIMIT_NOFILE); undefined where the system does not say. */
  openFilesMax: (): number | undefined => softLimitOf('Max open files', '/proc/self/limits'),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  exit: (code: number): never => process.exit(code),
  setExitCode(code: number): void {
    process.exitCode = code;
  },
  /** How this program is called again. Without the `--` Node takes an `--env-file` among the words that follow for its own. */
  self: (): readonly string[] => [process.execPath, ...process.execArgv, '--', ...process.argv.slice(1, 2)],
  /** On this process's own terminal; Ctrl-C is its, not ours. */
  runProgram(program: string, words: readonly string[]): Promise<number> {
    return new Promise((resolve, reject) => {
      const ignore = (): void => {};
      process.on('SIGINT', ignore);
      const child = spawn(program, [...words], { stdio: 'inherit' });
      child.once('error', reject);
      child.once('exit', (code) => resolve(code ?? 255));
      child.once('close', () => process.off('SIGINT', ignore));
    });
  },
  /** Sends `signal` to a process (negative: to its group). False when there is no such process. */
  signal(pid: number, signal: NodeJS.Signals | 0): boolean {
    try {
      return process.kill(pid, signal);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
      throw error;
    }
  },
  /**
   * Aborts at the first SIGINT or SIGTERM; one more, later, ends the process at once. Not within a second: a terminal, npm and
   * `timeout` each deliver the same Ctrl-C, so one wish to stop arrives two or three times.
   */
  terminationSignal(): AbortSignal {
    const controller = new AbortController();
    let firstAtMs = 0;
    const terminate = (): void => {
      if (controller.signal.aborted && performance.now() - firstAtMs > 1000) process.exit(130);
      if (controller.signal.aborted) return;
      firstAtMs = performance.now();
      controller.abort();
    };
    process.on('SIGINT', terminate);
    process.on('SIGTERM', terminate);
    return controller.signal;
  },
};

/** Node lets all promises have their say between two of them, as between two turns (`processImmediate` in its lib/internal/timers.js). */
const turnsAtOnce = 64;

/** A number of proc_pid_limits(5); `unlimited` is Infinity. */
function softLimitOf(name: string, path: string): number | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return undefined; // no Linux
  }
  const line = text.split('\n').find((line) => line.startsWith(name));
  const [soft] = line?.slice(name.length).trim().split(/\s+/) ?? [];
  return soft === undefined ? undefined : soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
}

const releaseBytesMax = 64 * 1024 * 1024;

type Collector = (what: { readonly type: 'minor' | 'major'; readonly flavor?: 'last-resort' }) => void;
let collector: Collector | undefined;

/** V8 has it for tests (`--expose-gc`), under a name that programs do not see. */
function findCollector(): Collector {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('globalThis.gc');
  setFlagsFromString('--no-expose-gc');
  return typeof collect === 'function' ? (what) => void collect(what) : () => {};
}

/** On standard error, so that standard output stays what the user asked for: JSON lines, or plain text where a person reads them. */
export function systemLogger(level: LogLevel = 'info', format: LogFormat = 'auto'): Logger {
  if (format === 'text' || (format === 'auto' && process.stderr.isTTY))
    return createTextLogger({ level, nowMs: systemClock.nowMs, write: (line) => process.stderr.write(line) });
  const wrap = (log: pino.Logger): Logger => ({
    debug: (message, fields) => log.debug(fields ?? {}, message),
    info: (message, fields) => log.info(fields ?? {}, message),
    warn: (message, fields) => log.warn(fields ?? {}, message),
    error: (message, fields) => log.error(fields ?? {}, message),
    with: (fields: LogFields) => wrap(log.child(fields)),
  });
  return wrap(
    pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination({ dest: 2, sync: true })),
  );
}

/** The certificates of a PEM file, each checked to be one. Throws an `Error` that says what is wrong with it. */
export async function certificatesAt(path: string): Promise<string[]> {
  const [text, { X509Certificate }] = await Promise.all([readFile(path, 'utf8'), import('node:crypto')]);
  const certificates = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (certificates.length === 0) throw new Error('it holds no certificate in PEM form');
  return certificates.map((certificate) => new X509Certificate(certificate).toString());
}

/** For all TLS connections that this process opens from now on, besides what Node trusts. */
export async function trustCertificates(certificates: readonly string[]): Promise<void> {
  const { default: tls } = await import('node:tls');
  const set: unknown = Reflect.get(tls, 'setDefaultCACertificates'); // since Node 22.19 and 24.5; its types are older
  if (typeof set !== 'function')
    throw new Error('this Node cannot: take 24.5 or newer, or name the file in NODE_EXTRA_CA_CERTS');
  set([...tls.getCACertificates('default'), ...certificates]);
}

/** What to do about a file that only its owner should read; undefined: nothing, or it is not there. */
export async function adviceOnSecretFile(path: string): Promise<string | undefined> {
  const status = await stat(path).catch(() => undefined); // who reads it says that it is not there
  if (status === undefined || !status.isFile() || (status.mode & 0o066) === 0) return undefined;
  return `other users of this machine may read ${path}: chmod 600 ${path}`;
}

/**
 * Which machine this is, the same for agent and control plane; undefined where the system has no id: containers and image builders
 * leave it empty, zero or "uninitialized" (machine-id(5)).
 */
export async function systemMachineId(path = '/etc/machine-id'): Promise<string | undefined> {
  const id = await rawMachineId(path);
  return id === undefined ? undefined : appMachineId(id);
}

/** 32 hex digits, or undefined when the file has none or is not there. */
export async function rawMachineId(path: string): Promise<string | undefined> {
  let text: string;
  try {
    text = (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  return /^[0-9a-f]{32}$/.test(text) && !/^0+$/.test(text) ? text : undefined;
}

const applicationId = Buffer.from('7c1f0f0e6f5b4d0f9f0a3a52c3f6b1d8', 'hex'); // drawn once, for Berth

/** As sd_id128_get_machine_app_specific(3): the system's own id is confidential and never leaves the machine. */
export function appMachineId(machineId: string): string {
  const id = createHmac('sha256', Buffer.from(machineId, 'hex')).update(applicationId).digest().subarray(0, 16);
  id.writeUInt8((id.readUInt8(6) & 0x0f) | 0x40, 6);
  id.writeUInt8((id.readUInt8(8) & 0x3f) | 0x80, 8);
  return id.toString('hex');
}
