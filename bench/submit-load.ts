// The load of bench/submit.ts, in a worker with a heap and an event loop of its own: hosts, a watch, and creates in four patterns.
// Everything is measured here, from when a request was due to when the watch showed it bound.

import { parentPort, workerData } from 'node:worker_threads';
import { benchAgentId } from './agent-client.ts';
import { connectRaw, encodeRequest, followLines, type RawConnection, type Target } from './raw-http.ts';
import { median, percentile } from './row.ts';

export interface LoadInput {
  readonly target: Target;
  readonly bareUrl: string;
  readonly hosts: readonly { readonly name: string; readonly token: string }[];
  readonly scale: number;
  readonly patterns: readonly Pattern[];
}

export type Pattern = 'steady' | 'single' | 'batch' | 'burst' | 'schedule';

export interface LoadFigures {
  readonly bareHttpP50Ms: number;
  readonly bareHttpPerSecond: number;
  readonly boundP50Ms: number;
  readonly boundP99Ms: number;
  readonly singlePerSecond: number;
  readonly schedulePerSecond: number;
  readonly batchPerSecond: number;
  readonly burstSeconds: number;
}

const input: LoadInput = workerData;
const { target, scale } = input;
const clients = 16;
const batchSize = 100;
const burst = 10_000;
/** Room for all that is created, however few the hosts: 256 on each of 5,000. */
const cpusPerHost = Math.ceil(1_280_000 / input.hosts.length);

/** When the watch showed an instance bound, by name. */
const boundAt = new Map<string, number>();
const bound = '"phase":"Scheduled"';
let wanted = Number.POSITIVE_INFINITY;
let reached: () => void = () => {};
/** Names must differ when a pattern is repeated. */
let singles = 0;

await registerHosts();
await post('/v1/images', { metadata: { name: 'bench' }, spec: { source: 'file:///nowhere' } });
const watch = await followLines(target, '/v1/instances?watch=true', (lines) => {
  const now = performance.now();
  for (let at = lines.indexOf(bound); at >= 0; at = lines.indexOf(bound, at + bound.length)) {
    const name = lines.lastIndexOf('"name":"', at) + 8;
    boundAt.set(lines.slice(name, lines.indexOf('"', name)), now);
  }
  if (boundAt.size >= wanted) reached();
});
const bare = await closedLoop(input.bareUrl, 2_000 * scale, 'bare', false);
tell({ bareHttpP50Ms: bare.p50Ms, bareHttpPerSecond: bare.perSecond });
await steady(1_000, 3, 'warm');
for (const pattern of input.patterns) {
  switch (pattern) {
    case 'steady': {
      const latency = await steady(1_000, Math.max(2, 10 * scale), 'steady');
      tell({ boundP50Ms: median(latency), boundP99Ms: percentile(latency, 0.99) });
      break;
    }
    case 'single':
      tell({ singlePerSecond: (await closedLoop(target.url, 6_000 * scale, `single-${singles++}`, true)).perSecond });
      break;
    case 'schedule':
      tell({ schedulePerSecond: await schedules(6_000 * scale) });
      break;
    case 'batch':
      tell({ batchPerSecond: await batches(6_000 * scale) });
      break;
    case 'burst':
      tell({ burstSeconds: await burstOf(burst) });
  }
}
watch.close();

function tell(figures: Partial<LoadFigures>): void {
  parentPort?.postMessage(figures);
}

function create(name: string) {
  return { metadata: { name }, spec: { image: 'bench', cpus: 1, memoryMiB: 512 } };
}

/** Resolves when `count` more are bound than were when it was called. */
function moreBound(count: number): { readonly done: Promise<void> } {
  boundAt.clear();
  wanted = count;
  const { promise, resolve } = Promise.withResolvers<void>();
  const stuck = setTimeout(() => {
    console.error(`only ${boundAt.size} of ${wanted} were bound within two minutes`);
    process.exit(1);
  }, 120_000);
  reached = () => {
    clearTimeout(stuck);
    wanted = Number.POSITIVE_INFINITY;
    resolve();
  };
  return { done: promise };
}

async function connections(url: string, count: number): Promise<RawConnection[]> {
  return Promise.all(Array.from({ length: count }, () => connectRaw(url)));
}

async function post(path: string, body: unknown): Promise<void> {
  const connection = await connectRaw(target.url);
  await new Promise<void>((resolve) =>
    connection.send(encodeRequest(target, 'POST', path, body), (answer) => {
      expectStatus(answer.status, answer.body);
      resolve();
    }),
  );
  connection.close();
}

function expectStatus(status: number, body: Buffer): void {
  if (status >= 300) throw new Error(`the server answered ${status}: ${body.toString().slice(0, 300)}`);
}

async function registerHosts(): Promise<void> {
  const open = await connections(target.url, clients);
  let next = 0;
  await Promise.all(
    open.map(
      (connection) =>
        new Promise<void>((resolve) => {
          const one = (): void => {
            const host = input.hosts[next++];
            if (!host) return resolve();
            const body = {
              session: `bench-${host.name}`,
              machineId: host.name,
              agentId: benchAgentId,
              bootId: 'bench',
              architecture: 'amd64',
              capacity: { VCPU: cpusPerHost, MEMORY_MB: 1024 * cpusPerHost, DISK_GB: 10_000 },
              reserved: {},
              labels: {},
              drivers: [{ name: 'fake', available: true }],
              images: [],
              agentVersion: 'bench',
            };
            const { name, token } = host;
            connection.send(
              encodeRequest({ url: target.url, token }, 'PUT', `/v1/hosts/${name}/session`, body),
              (answer) => {
                expectStatus(answer.status, answer.body);
                one();
              },
            );
          };
          one();
        }),
    ),
  );
  for (const connection of open) connection.close();
}

/** Each request is timed from when it was due, so that a stall of server or generator is not hidden (coordinated omission). */
async function steady(perSecond: number, seconds: number, prefix: string): Promise<number[]> {
  const open = await connections(target.url, clients);
  const count = Math.round(perSecond * seconds);
  const requests = Array.from({ length: count }, (_, i) =>
    encodeRequest(target, 'POST', '/v1/instances', create(`${prefix}-${i}`)),
  );
  const dueAt = new Map<string, number>();
  const bound = moreBound(count);
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  const startAt = performance.now() + 20;
  for (let i = 0; i < count; ) {
    // Timers are exact to a millisecond only: look ten times in one, asleep in between.
    const now = performance.now();
    for (; i < count && startAt + (i * 1000) / perSecond <= now; i++) {
      dueAt.set(`${prefix}-${i}`, startAt + (i * 1000) / perSecond);
      const request = requests[i];
      if (request) open[i % clients]?.send(request, (answer) => expectStatus(answer.status, answer.body));
    }
    Atomics.wait(sleeper, 0, 0, 0.1);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await bound.done;
  for (const connection of open) connection.close();
  return [...dueAt].map(([name, due]) => (boundAt.get(name) ?? Number.NaN) - due);
}

/** Every client sends its next create when the one before is answered; counted when the watch has shown them all bound. */
async function closedLoop(
  url: string,
  durationMs: number,
  prefix: string,
  binds: boolean,
): Promise<{ perSecond: number; p50Ms: number }> {
  const open = await connections(url, clients);
  const times: number[] = [];
  const startedAt = performance.now();
  const bound = moreBound(Number.POSITIVE_INFINITY);
  let sent = 0;
  await inTurns(open, {
    until: startedAt + durationMs,
    next: () => encodeRequest(target, 'POST', '/v1/instances', create(`${prefix}-${sent++}`)),
    answered: (tookMs) => times.push(tookMs),
  });
  if (binds) await allOf(bound, sent);
  else reached();
  const perSecond = (sent * 1000) / (performance.now() - startedAt);
  for (const connection of open) connection.close();
  return { perSecond, p50Ms: median(times) };
}

/** Tasks, which are placed before they are answered. */
async function schedules(durationMs: number): Promise<number> {
  const open = await connections(target.url, clients);
  const body = { requested_cpu: 1, requested_memory: 512 };
  const startedAt = performance.now();
  let answers = 0;
  await inTurns(open, {
    until: startedAt + durationMs,
    next: () => encodeRequest(target, 'POST', '/schedule', body),
    answered: () => (answers += 1),
  });
  const perSecond = (answers * 1000) / (performance.now() - startedAt);
  for (const connection of open) connection.close();
  return perSecond;
}

interface Turns {
  /** Nothing is sent after this moment of the monotonic clock. */
  readonly until: number;
  readonly next: () => ReturnType<typeof encodeRequest>;
  readonly answered?: (tookMs: number) => void;
}

/** Every connection sends its next request when the one before is answered. */
async function inTurns(open: Awaited<ReturnType<typeof connections>>, { until, next, answered }: Turns): Promise<void> {
  await Promise.all(
    open.map(
      (connection) =>
        new Promise<void>((resolve) => {
          const one = (): void => {
            const at = performance.now();
            if (at > until) return resolve();
            connection.send(next(), (answer) => {
              expectStatus(answer.status, answer.body);
              answered?.(performance.now() - at);
              one();
            });
          };
          one();
        }),
    ),
  );
}

async function allOf(bound: { readonly done: Promise<void> }, count: number): Promise<void> {
  wanted = count;
  if (boundAt.size >= count) reached();
  await bound.done;
}

async function batches(durationMs: number): Promise<number> {
  const open = await connections(target.url, clients);
  const startedAt = performance.now();
  const bound = moreBound(Number.POSITIVE_INFINITY);
  let sent = 0;
  await inTurns(open, {
    until: startedAt + durationMs,
    next() {
      const items = Array.from({ length: batchSize }, () => create(`batch-${sent++}`));
      return encodeRequest(target, 'POST', '/v1/instances/batch', { items });
    },
  });
  await allOf(bound, sent);
  const perSecond = (sent * 1000) / (performance.now() - startedAt);
  for (const connection of open) connection.close();
  return perSecond;
}

/** All at once: each its own request, pipelined over the clients' connections. */
async function burstOf(count: number): Promise<number> {
  const open = await connections(target.url, clients);
  const requests = Array.from({ length: count }, (_, i) =>
    encodeRequest(target, 'POST', '/v1/instances', create(`burst-${i}`)),
  );
  const bound = moreBound(count);
  const startedAt = performance.now();
  for (const [i, connection] of open.entries()) {
    const own = requests.filter((_, at) => at % clients === i);
    for (const request of own) connection.send(request, (answer) => expectStatus(answer.status, answer.body));
  }
  await bound.done;
  const seconds = (performance.now() - startedAt) / 1000;
  for (const connection of open) connection.close();
  return seconds;
}
