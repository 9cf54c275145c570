// The machine: clock, timers, randomness, environment, process. The only file of src/ that accesses them.

import { spawn } from 'node:child_process';
import { createHmac, randomBytes, randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { uptime } from 'node:os';
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

/** `length` unpredictable bytes, for keys and tokens. */
export function randomSecret(length: number): Buffer {
  return randomBytes(length);
}

export const systemFetch: typeof fetch = (...call) => fetch(...call);

export function environment(): Readonly<Record<string, string | undefined>> {
  return process.env;
}

export const system = {
  /** Milliseconds since the machine started; goes on while it is suspended. */
  bootMs: (): number => uptime() * 1_000,
  arguments: (): string[] => process.argv.slice(2),
  /** The running Node binary. */
  nodePath: (): string => process.execPath,
  /** Calls `run` after the events of this turn have been handled: the time to batch many small things. */
  afterTurn(run: () => void): void {
    setImmediate(run);
  },
  /** Calls `run` once every promise callback that is ready now, and all that those make ready, has run. */
  afterPromises(run: () => void): void {
    process.nextTick(run);
  },
  /** Resolves once every promise callback that is ready now, and all that those make ready, has run. */
  turn: (): Promise<void> => new Promise((resolve) => setImmediate(resolve)),
  /**
   * Like `turn`, for a caller that mostly waits for turns and needs no I/O in between: several turns share one poll of
   * the system. One call at a time.
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
  /**
   * Calls `listener` with uncaught errors instead of ending the process. Returns a function that restores the default.
   */
  onUncaught(listener: (error: unknown) => void): () => void {
    process.on('uncaughtException', listener);
    process.on('unhandledRejection', listener);
    return () => {
      process.off('uncaughtException', listener);
      process.off('unhandledRejection', listener);
    };
  },
  /** Calls `listener` at each SIGHUP, which else would end the process. Returns a function that restores the default. */
  onHangup(listener: () => void): () => void {
    process.on('SIGHUP', listener);
    return () => void process.off('SIGHUP', listener);
  },
  pid: (): number => process.pid,
  userId: (): number => process.getuid?.() ?? 0,
  workingDirectory: (): string => process.cwd(),
  architecture: (): string => process.arch,
  platform: (): string => process.platform,
  /** Collects the young generation of V8's heap. Does nothing where V8 does not support it. */
  collectYoung(): void {
    collector ??= findCollector();
    collector({ type: 'minor' });
  },
  /**
   * Returns unused memory from the start to the system. Blocks for about 40 ms per 20 MiB, so it does nothing with a
   * large heap, where it would free little.
   */
  releaseUnused(): void {
    if (process.memoryUsage().heapUsed > releaseBytesMax) return;
    collector ??= findCollector();
    collector({ type: 'major', flavor: 'last-resort' });
  },
  /** How long this process has been idle since its start, in milliseconds. Never falls. */
  idleMs: (): number => performance.nodeTiming.idleTime,
  residentBytes: (): number => process.memoryUsage.rss(),
  /**
   * Limit on open files and connections of this process (RLIMIT_NOFILE); undefined where the system does not report it.
   */
  openFilesMax: (): number | undefined => softLimitOf('Max open files', '/proc/self/limits'),
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  exit: (code: number): never => process.exit(code),
  setExitCode(code: number): void {
    process.exitCode = code;
  },
  /** The command that runs this program again. Without the `--` Node would interpret a later `--env-file` itself. */
  self: (): readonly string[] => [process.execPath, ...process.execArgv, '--', ...process.argv.slice(1, 2)],
  /** On this process's own terminal; the program handles Ctrl-C, not this process. */
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
  /** Sends `signal` to a process (negative: to its group). Returns false when there is no such process. */
  signal(pid: number, signal: NodeJS.Signals | 0): boolean {
    try {
      return process.kill(pid, signal);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
      throw error;
    }
  },
  /**
   * Aborts at the first SIGINT or SIGTERM; a later one ends the process at once. Signals within a second count once: a
   * terminal, npm and `timeout` each deliver the same Ctrl-C, so it arrives two or three times.
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

/**
 * Node runs all promise callbacks between two immediates, as between two turns (`processImmediate` in its
 * lib/internal/timers.js).
 */
const turnsAtOnce = 64;

/** A value of proc_pid_limits(5); `unlimited` is Infinity. */
function softLimitOf(name: string, path: string): number | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return undefined; // not Linux
  }
  const line = text.split('\n').find((line) => line.startsWith(name));
  const [soft] = line?.slice(name.length).trim().split(/\s+/) ?? [];
  return soft === undefined ? undefined : soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
}

const releaseBytesMax = 64 * 1024 * 1024;

type Collector = (what: { readonly type: 'minor' | 'major'; readonly flavor?: 'last-resort' }) => void;
let collector: Collector | undefined;

/** V8 provides it for tests (`--expose-gc`), under a name that programs do not see. */
function findCollector(): Collector {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('globalThis.gc');
  setFlagsFromString('--no-expose-gc');
  return typeof collect === 'function' ? (what) => void collect(what) : () => {};
}

/** Of log lines that are kept while they cannot be written; later ones are dropped. */
const unwrittenCharactersMax = 1024 * 1024;

/** On standard error, so that standard output contains only the result: JSON lines, or plain text on a terminal. */
export function systemLogger(level: LogLevel = 'info', format: LogFormat = 'auto'): Logger {
  const lines = pino.destination({ dest: 2, sync: true, maxLength: unwrittenCharactersMax });
  lines.on('error', () => {}); // a full disk, or a reader that has ended: the process goes on without its log
  if (format === 'text' || (format === 'auto' && process.stderr.isTTY))
    return createTextLogger({ level, nowMs: systemClock.nowMs, write: (line) => void lines.write(line) });
  const wrap = (log: pino.Logger): Logger => ({
    debug: (message, fields) => log.debug(fields ?? {}, message),
    info: (message, fields) => log.info(fields ?? {}, message),
    warn: (message, fields) => log.warn(fields ?? {}, message),
    error: (message, fields) => log.error(fields ?? {}, message),
    with: (fields: LogFields) => wrap(log.child(fields)),
  });
  return wrap(pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, lines));
}

/** The validated certificates of a PEM file. Throws an `Error` that says what is wrong with it. */
export async function certificatesAt(path: string): Promise<string[]> {
  const [text, { X509Certificate }] = await Promise.all([readFile(path, 'utf8'), import('node:crypto')]);
  const certificates = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (certificates.length === 0) throw new Error('it holds no certificate in PEM form');
  return certificates.map((certificate) => new X509Certificate(certificate).toString());
}

/** For all later TLS connections of this process, in addition to Node's defaults. */
export async function trustCertificates(certificates: readonly string[]): Promise<void> {
  const { default: tls } = await import('node:tls');
  const set: unknown = Reflect.get(tls, 'setDefaultCACertificates'); // since Node 22.19 and 24.5; missing in the type definitions
  if (typeof set !== 'function')
    throw new Error('this Node cannot: take 24.5 or newer, or name the file in NODE_EXTRA_CA_CERTS');
  set([...tls.getCACertificates('default'), ...certificates]);
}

/** Advice about a file that only its owner should read; undefined when there is none, or no file. */
export async function adviceOnSecretFile(path: string): Promise<string | undefined> {
  const status = await stat(path).catch(() => undefined); // its reader reports a missing file
  if (status === undefined || !status.isFile() || (status.mode & 0o066) === 0) return undefined;
  return `other users of this machine may read ${path}: chmod 600 ${path}`;
}

/**
 * The identity of this machine, the same for agent and control plane; undefined where the system has none: containers
 * and image builders leave it empty, zero or "uninitialized" (machine-id(5)).
 */
export async function systemMachineId(path = '/etc/machine-id'): Promise<string | undefined> {
  const id = await rawMachineId(path);
  return id === undefined ? undefined : appMachineId(id);
}

/** 32 hex digits, or undefined when the file is missing or has none. */
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

const applicationId = Buffer.from('7c1f0f0e6f5b4d0f9f0a3a52c3f6b1d8', 'hex'); // random, fixed for Berth

/** As sd_id128_get_machine_app_specific(3): the system's own id is confidential and never leaves the machine. */
export function appMachineId(machineId: string): string {
  const id = createHmac('sha256', Buffer.from(machineId, 'hex')).update(applicationId).digest().subarray(0, 16);
  id.writeUInt8((id.readUInt8(6) & 0x0f) | 0x40, 6);
  id.writeUInt8((id.readUInt8(8) & 0x3f) | 0x80, 8);
  return id.toString('hex');
}
