// A command line for tests: a fake server responds, output is kept, and nothing of the machine is touched except the
// context file.

import { seededPrng } from '../base/prng.ts';
import type { Clock } from '../base/clock.ts';
import type { FetchInit, FetchResponse } from '../api/client/user-client.ts';
import type { CommandEntry } from './registry.ts';
import { runProgram } from './program.ts';

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

type Answer =
  | { readonly status?: number; readonly json: unknown }
  | { readonly lines: AsyncIterable<unknown> | readonly unknown[] }
  | { readonly bytes: AsyncIterable<string | Uint8Array> | readonly (string | Uint8Array)[] };
export type Handler = (request: Request) => Answer | undefined;

export interface RunResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly requests: readonly Request[];
}

export interface RunSettings {
  readonly handler?: Handler;
  readonly environment?: Readonly<Record<string, string>>;
  readonly homeDirectory?: string;
  readonly stdin?: string;
  readonly terminal?: { readonly columns: number; readonly rows: number };
  readonly interruption?: AbortSignal;
  /** Default: one that stands still. */
  readonly clock?: Clock;
  readonly more?: readonly CommandEntry[];
  /** Replaces programs that a command runs: returns their exit code. */
  readonly onProgram?: (program: string, words: readonly string[]) => number;
  /** Standard error is a terminal. */
  readonly errorsOnTerminal?: true;
  /** Called with all of standard output after each write. */
  readonly onOutput?: (stdout: string) => void;
}

/** 2026-01-02 03:04:05 UTC; it does not advance. */
export const testNowMs = Date.UTC(2026, 0, 2, 3, 4, 5);

const stillClock: Clock = { nowMs: () => testNowMs, monotonicMs: () => 0, setTimer: () => ({ cancel() {} }) };

export async function runBerth(words: readonly string[], settings: RunSettings = {}): Promise<RunResult> {
  const requests: Request[] = [];
  let stdout = '';
  let stderr = '';
  const text = (data: string | Uint8Array): string => (typeof data === 'string' ? data : Buffer.from(data).toString());
  const exitCode = await runProgram(
    {
      stdout: {
        ...(settings.terminal ? { isTTY: true, ...settings.terminal } : {}),
        write(data) {
          stdout += text(data);
          settings.onOutput?.(stdout);
        },
      },
      stderr: { ...(settings.errorsOnTerminal ? { isTTY: true } : {}), write: (data) => (stderr += text(data)) },
      stdin: (async function* () {
        yield settings.stdin ?? '';
      })(),
      environment: { NO_COLOR: '1', BERTH_URL: 'https://berth.test', BERTH_TOKEN: 'secret', ...settings.environment },
      homeDirectory: settings.homeDirectory ?? '/nonexistent',
      clock: settings.clock ?? stillClock,
      runProgram: (program, words) => Promise.resolve(settings.onProgram?.(program, words) ?? 0),
      self: ['berth'],
      version: '0.0.0-test',
      interruption: () => settings.interruption ?? new AbortController().signal,
      fetch: async (url, init) => {
        const request = requestOf(url, init);
        requests.push(request);
        const answer = settings.handler?.(request);
        if (!answer)
          return respond(
            404,
            JSON.stringify({ error: { code: 'NotFound', message: `no route ${request.method} ${request.path}` } }),
          );
        if ('json' in answer) return respond(answer.status ?? 200, JSON.stringify(answer.json));
        if ('bytes' in answer) return stream(answer.bytes, init.signal);
        return stream(
          mapped(answer.lines, (line) => `${JSON.stringify(line)}\n`),
          init.signal,
        );
      },
    },
    words,
    settings.more,
  );
  return { exitCode, stdout, stderr, requests };
}

function requestOf(url: string, init: FetchInit): Request {
  const { pathname, searchParams } = new URL(url);
  return {
    method: init.method,
    path: pathname,
    query: Object.fromEntries(searchParams),
    headers: init.headers,
    body: typeof init.body === 'string' ? JSON.parse(init.body) : init.body,
  };
}

async function* mapped(
  items: AsyncIterable<unknown> | readonly unknown[],
  map: (item: unknown) => string,
): AsyncIterable<string> {
  for await (const item of items) yield map(item);
}

function respond(status: number, text: string): FetchResponse {
  return { status, headers: new Headers(), body: null, text: async () => text };
}

function stream(
  pieces: AsyncIterable<string | Uint8Array> | readonly (string | Uint8Array)[],
  signal: AbortSignal | undefined,
): FetchResponse {
  const body = (async function* () {
    for await (const piece of pieces) {
      if (signal?.aborted) throw new Error('aborted');
      yield typeof piece === 'string' ? Buffer.from(piece) : piece;
    }
  })();
  return { status: 200, headers: new Headers(), body, text: async () => '' };
}

const prng = seededPrng(1);
let made = 0;

const commonStatus = { incarnation: 1, restartCount: 0, observedGeneration: 1, conditions: [] };

/** An instance as the server would return it. */
export function testInstance(
  name: string,
  { status = {}, spec = {}, metadata = {} }: { status?: object; spec?: object; metadata?: object } = {},
): {
  metadata: { id: string; name: string; project: string; revision: number };
} {
  made++;
  return {
    kind: 'instance',
    schemaVersion: 1,
    metadata: {
      id: `inst_${String(prng.uint32()).padStart(26, '0')}`,
      name,
      project: 'default',
      revision: made,
      generation: 1,
      labels: {},
      createdAtMs: testNowMs - 90_000,
      ...metadata,
    },
    spec: {
      image: 'tiny',
      powerState: 'running',
      restartPolicy: 'Never',
      exclusive: false,
      placement: {},
      ports: [],
      sshKeys: [],
      userData: '',
      stopGraceMs: 10_000,
      ...spec,
    },
    status: { phase: 'Running', host: 'h1', ...commonStatus, ...status },
  } as ReturnType<typeof testInstance>;
}

export function testHost(name: string, { status = {}, spec = {} }: { status?: object; spec?: object } = {}): object {
  made++;
  return {
    kind: 'host',
    schemaVersion: 1,
    metadata: {
      id: `host_${name}`,
      name,
      project: '',
      revision: made,
      generation: 1,
      labels: {},
      createdAtMs: testNowMs - 7_200_000,
    },
    spec: { paused: false, allocationRatios: {}, ...spec },
    status: {
      epoch: 1,
      architecture: 'amd64',
      capacity: { VCPU: 8, MEMORY_MB: 16_384, DISK_GB: 100 },
      reserved: { MEMORY_MB: 1024 },
      drivers: [
        { name: 'qemu', available: true, accelerator: 'tcg' },
        { name: 'fake', available: false, reason: 'off' },
      ],
      images: [],
      unknownGuests: [],
      conditions: [
        {
          type: 'Ready',
          status: 'True',
          reason: 'Registered',
          message: 'its agent has registered',
          sinceMs: testNowMs - 60_000,
        },
      ],
      ...status,
    },
  };
}

export function page(items: readonly unknown[], revision = 7): { json: unknown } {
  return { json: { items, revision } };
}

export function refusal(
  status: number,
  code: string,
  message: string,
  field?: string,
): { status: number; json: unknown } {
  return { status, json: { error: { code, message, ...(field === undefined ? {} : { field }) } } };
}
