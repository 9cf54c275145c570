// Row `noisy_neighbour_p99_ratio`: creates of a quiet project at a steady rate, alone and while another project floods. A flood comes from
// another machine: it is a process of its own, and the system gives it only what the server and the quiet project leave. It still takes
// memory bandwidth and some of the second core, where the server's store and its collector run, so the ratio is rather too high than too low.
// On a machine with other work, both times are mostly waits for a core, and the ratio says little.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { agentClientOf } from './agent-client.ts';
import { connectRaw, encodeRequest, type Target } from './raw-http.ts';
import { type Emit, median, percentile } from './row.ts';
import { startServerProcess } from './server-process.ts';

const perSecond = 100;
const seconds = 6;
const rounds = 3;
const hosts = 100;

export async function noisyNeighbour(directory: string, emit: Emit): Promise<void> {
  const server = await startServerProcess(join(directory, 'server'), {
    env: { BERTH_SERVER_OFFLINE_AFTER_MS: '86400000' }, // the hosts register once
  });
  try {
    const target = { url: server.url, token: server.operatorToken };
    for (let i = 0; i < hosts; i++) await agentClientOf(server, `bench-${i}`);
    await post(target, '/v1/images', { metadata: { name: 'bench' }, spec: { source: 'file:///nowhere' } });
    await quietP99Ms(target, 'warm');
    const flood = await startFlood(target);
    const ratios: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const alone = await quietP99Ms(target, `alone-${round}`);
      flood.go();
      const beside = await quietP99Ms(target, `beside-${round}`);
      const answered = await flood.rest();
      ratios.push(beside / alone);
      process.stderr.write(
        `  p99 ${alone.toFixed(2)} ms alone, ${beside.toFixed(2)} ms beside ${Math.round(answered / seconds)} creates/s\n`,
      );
    }
    flood.close();
    const name = 'noisy_neighbour_p99_ratio';
    const value = median(ratios);
    emit({ suite: 'access', name, value, unit: 'ratio', better: 'lower', goal: 1.5, limit: 3, ratio: value / 3 });
  } finally {
    await server.close();
  }
}

/** Each is timed from when it was due, so that a stall is not hidden (coordinated omission). */
async function quietP99Ms(target: Target, prefix: string): Promise<number> {
  const connections = await Promise.all(Array.from({ length: 16 }, () => connectRaw(target.url)));
  const took: number[] = [];
  const count = perSecond * seconds;
  const all = Promise.withResolvers<void>();
  const startAt = performance.now() + 20;
  for (let i = 0; i < count; i++) {
    const dueAt = startAt + (i * 1000) / perSecond;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueAt - performance.now())));
    const body = { metadata: { name: `${prefix}-${i}`, project: 'quiet' }, spec: { image: 'bench', cpus: 1 } };
    connections[i % connections.length]?.send(encodeRequest(target, 'POST', '/v1/instances', body), (answer) => {
      if (answer.status !== 201)
        all.reject(new Error(`the server answered ${answer.status}: ${answer.body.toString()}`));
      took.push(performance.now() - dueAt);
      if (took.length === count) all.resolve();
    });
  }
  await all.promise;
  for (const connection of connections) connection.close();
  return percentile(took, 0.99);
}

async function post(target: Target, path: string, body: unknown): Promise<void> {
  const connection = await connectRaw(target.url);
  const status = await new Promise<number>((resolve) =>
    connection.send(encodeRequest(target, 'POST', path, body), (answer) => resolve(answer.status)),
  );
  connection.close();
  if (status !== 201) throw new Error(`POST ${path} was answered with ${status}`);
}

/** In a process of its own that the system gives only what others leave: what is measured is the server, not the share that a generator takes. */
async function startFlood(target: Target) {
  const program = fileURLToPath(new URL('./access-flood.ts', import.meta.url));
  const words = ['--pdeathsig', 'KILL', 'nice', '-n', '19', process.execPath, program, JSON.stringify(target)];
  const child = spawn('setpriv', words, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const said = async (): Promise<number> => Number((await once(child, 'message'))[0]);
  await said();
  return {
    go: () => child.send('go'),
    /** How many creates were answered since `go`. */
    rest(): Promise<number> {
      const answered = said();
      child.send('rest');
      return answered;
    },
    close: () => child.kill(),
  };
}
