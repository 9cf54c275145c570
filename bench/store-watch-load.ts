// Some of the watchers of store-watch.ts, in a process of their own: a connection each, opened by hand and read as bytes, for ten thousand
// clients of any library would cost more than the server. A line says in its label `at` when its change was due.

import { connect } from 'node:net';
import type { Target } from './raw-http.ts';

export interface WatchLoadInput {
  readonly target: Target;
  readonly projects: readonly string[];
  readonly watchersPerProject: number;
}

export type WatchLoadMessage =
  | { readonly type: 'watching' }
  /** Of each change the time to the last of its watchers. */
  | { readonly type: 'latencies'; readonly latenciesMs: number[] };

const opensAtOnce = 100;
const mark = '"at":"';
const newline = 10;
const readInto = Buffer.allocUnsafeSlow(256 * 1024);

/** By project and moment: how many watchers have it, and when the last one got it. */
const seen = new Map<string, { count: number; latencyMs: number }>();
let wanted = Number.POSITIVE_INFINITY;
let complete = 0;

process.once('disconnect', () => process.exit(0));
process.on('message', (message: WatchLoadInput | { readonly changes: number }) => {
  if ('changes' in message) {
    wanted = message.changes;
    tellWhenComplete();
  } else
    void watchAll(message).catch((error: unknown) => {
      console.error(error);
      process.exit(1);
    });
});

async function watchAll({ target, projects, watchersPerProject }: WatchLoadInput): Promise<void> {
  const waiting = projects.flatMap((project) => Array.from({ length: watchersPerProject }, () => project));
  const one = async (): Promise<void> => {
    for (let project = waiting.pop(); project !== undefined; project = waiting.pop())
      await watch(target, project, watchersPerProject);
  };
  await Promise.all(Array.from({ length: opensAtOnce }, one));
  tell({ type: 'watching' });
}

/** Resolves when the first bookmark is there. */
function watch({ url, token }: Target, project: string, watchers: number): Promise<void> {
  const { hostname, port, host } = new URL(url);
  return new Promise((resolve, reject) => {
    let answered = false;
    let begun = false;
    let rest: Buffer | undefined;
    const read = (piece: Buffer): void => {
      const bytes = rest ? Buffer.concat([rest, piece]) : piece;
      // Pieces end with a line most of the time; what is cut off waits for its end.
      rest = bytes.at(-1) === newline ? undefined : Buffer.from(bytes);
      if (rest) return;
      if (!answered && !bytes.toString('latin1', 0, 12).endsWith(' 200')) reject(new Error(bytes.toString()));
      answered = true;
      if (!begun && bytes.includes('bookmark')) {
        begun = true;
        resolve();
      }
      take(project, bytes, watchers);
    };
    const socket = connect({
      host: hostname,
      port: Number(port),
      // All connections read into one piece of memory, one after the other: a new one for each reading would be half of the work.
      onread: {
        buffer: readInto,
        callback: (length) => {
          read(readInto.subarray(0, length));
          return true;
        },
      },
    });
    socket.write(
      `GET /v1/instances?watch=true&project=${project} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n\r\n`,
    );
    socket.on('error', reject);
    socket.on('close', () => {
      console.error(`a watch of ${project} ended`);
      process.exit(1);
    });
  });
}

function take(project: string, bytes: Buffer, watchers: number): void {
  const now = process.hrtime.bigint();
  for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + mark.length)) {
    const digits = bytes.toString('latin1', at + mark.length, bytes.indexOf('"', at + mark.length));
    const key = `${project} ${digits}`;
    let change = seen.get(key);
    if (!change) seen.set(key, (change = { count: 0, latencyMs: 0 }));
    change.count += 1;
    change.latencyMs = Number(now - BigInt(digits)) / 1e6;
    if (change.count === watchers) complete += 1;
  }
  tellWhenComplete();
}

function tellWhenComplete(): void {
  if (complete < wanted) return;
  wanted = Number.POSITIVE_INFINITY;
  tell({ type: 'latencies', latenciesMs: [...seen.values()].map(({ latencyMs }) => latencyMs) });
}

function tell(message: WatchLoadMessage): void {
  process.send?.(message);
}
