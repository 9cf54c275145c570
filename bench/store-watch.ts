// Ten thousand watchers of one control plane, while a thousand instances a second are changed. Everything is real: a server process, HTTP,
// a connection for each watcher. 1,000 projects of ten instances, ten watchers each (`GET /v1/instances?watch=true&project=…`), in
// processes of their own; each change is a `PUT` of an instance's labels. A latency is the time from when a change was due to be sent until its line has
// come to the last of its ten watchers: HTTP, decision, durable commit and delivery.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { residentMb } from './process-memory.ts';
import { connectRaw, encodeRequest, type RawConnection, type Target } from './raw-http.ts';
import { type Emit, median, percentile } from './row.ts';
import { startServerProcess } from './server-process.ts';
import type { Backend } from './store-backends.ts';
import { fillStore, instanceNameOf, projectNameOf } from './store-fleet.ts';
import type { WatchLoadInput, WatchLoadMessage } from './store-watch-load.ts';

const suite = 'store';
const projects = 1_000;
const watchersPerProject = 10;
const instances = 10_000;
const changesPerSecond = 1_000;
/** The server collects its whole heap about every eight seconds: long enough that p99 counts several of its collections, whenever the first one falls. */
const seconds = 45;
/** Of the same load, not counted: code is compiled then. */
const warmSeconds = 3;
const loads = 2;
const clients = 16;
const dayMs = 86_400_000;

export interface WatchOptions {
  readonly nodeArguments?: readonly string[];
}

export async function measureWatch(
  backend: Backend,
  directory: string,
  emit: Emit,
  { nodeArguments = [] }: WatchOptions = {},
): Promise<void> {
  const url = backend.storeUrl('watch');
  await fillStore(url, { hosts: 200, instances, projects, events: 0 });
  const server = await startServerProcess(join(directory, `watch${backend.suffix}`), {
    env: { BERTH_SERVER_STORE: url, BERTH_SERVER_OFFLINE_AFTER_MS: String(dayMs) },
    nodeArguments,
  });
  const target = { url: server.url, token: server.operatorToken };
  const children: Load[] = [];
  try {
    for (let i = 0; i < loads; i++) {
      const own = Array.from({ length: projects }, (_, project) => project).filter((project) => project % loads === i);
      children.push(startLoad({ target, projects: own.map(projectNameOf), watchersPerProject }));
    }
    await Promise.all(children.map((child) => child.watching));
    const idleMb = await residentMb(server.pid);
    process.stderr.write(`  ${projects * watchersPerProject} watchers are there: ${idleMb.toFixed(0)} MiB\n`);
    let rssMb = idleMb;
    const sampling = setInterval(() => {
      void residentMb(server.pid).then((now) => {
        rssMb = Math.max(rssMb, now);
      });
    }, 500);
    const sent = await change(target);
    const told = await Promise.all(children.map((child) => child.latencies(sent)));
    clearInterval(sampling);
    const latencies = told.flat();
    if (latencies.length !== sent)
      throw new Error(`${sent} changes were made, ${latencies.length} came to all watchers`);
    const p99 = percentile(latencies, 0.99);
    const figures = [median(latencies), p99, Math.max(...latencies)].map((ms) => ms.toFixed(0)).join(', ');
    process.stderr.write(`  ${sent} changes: p50, p99, longest ${figures} ms; ${rssMb.toFixed(0)} MiB at most\n`);
    const row = { suite, better: 'lower' } as const;
    emit({ ...row, name: `watch_10k_rss_mb${backend.suffix}`, value: rssMb, unit: 'MiB', goal: 1_000 });
    emit({ ...row, name: `watch_10k_p99_ms${backend.suffix}`, value: p99, unit: 'ms', goal: 200 });
  } finally {
    for (const child of children) child.end();
    await server.close();
  }
}

/** At a steady rate, whatever the answers: a stall of the server is not hidden. Answers how many changes counted; all are durable. */
async function change(target: Target): Promise<number> {
  const open: RawConnection[] = await Promise.all(Array.from({ length: clients }, () => connectRaw(target.url)));
  const spec = { image: 'debian-12', powerState: 'running' };
  const warm = changesPerSecond * warmSeconds;
  const count = warm + changesPerSecond * seconds;
  let answered = 0;
  const done = Promise.withResolvers<void>();
  const startedAt = process.hrtime.bigint() + 20_000_000n;
  for (let i = 0; i < count; ) {
    const now = process.hrtime.bigint();
    for (; i < count; i++) {
      const due = startedAt + BigInt(Math.round((i * 1e9) / changesPerSecond));
      if (due > now) break;
      const at = i % instances;
      const path = `/v1/instances/${instanceNameOf(at)}?project=${projectNameOf(at % projects)}`;
      const body = {
        metadata: { labels: { app: 'web', tier: 'front', [i < warm ? 'warm' : 'at']: String(due) } },
        spec,
      };
      open[i % clients]?.send(encodeRequest(target, 'PUT', path, body), ({ status, body: told }) => {
        if (status !== 200) return done.reject(new Error(`a change was answered ${status}: ${told.toString()}`));
        answered += 1;
        if (answered === count) done.resolve();
      });
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await done.promise;
  for (const connection of open) connection.close();
  return count - warm;
}

interface Load {
  readonly watching: Promise<void>;
  /** Of all changes, when every watcher has its line. */
  latencies(changes: number): Promise<number[]>;
  end(): void;
}

function startLoad(input: WatchLoadInput): Load {
  const child: ChildProcess = fork(fileURLToPath(new URL('./store-watch-load.ts', import.meta.url)), {
    serialization: 'advanced',
  });
  child.send(input);
  const next = async (type: WatchLoadMessage['type']): Promise<WatchLoadMessage> => {
    const gone = once(child, 'exit').then(() => {
      throw new Error('a process of watchers ended early');
    });
    gone.catch(() => {});
    const [message]: WatchLoadMessage[] = await Promise.race([once(child, 'message'), gone]);
    if (message?.type !== type) throw new Error(`a process of watchers said ${message?.type} instead of ${type}`);
    return message;
  };
  return {
    watching: next('watching').then(() => undefined),
    async latencies(changes) {
      child.send({ changes: changes / loads });
      const message = await next('latencies');
      return message.type === 'latencies' ? message.latenciesMs : [];
    },
    end: () => void child.kill('SIGKILL'),
  };
}
