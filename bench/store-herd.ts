// Five thousand hosts whose control plane is killed and comes back: agents of the real protocol, each with a session, heartbeats and the
// stream of its assignments over connections of its own, that come back as real ones do (the delays of src/agent/agent.ts). The server is
// away for longer than a host may be silent. Measured from the start of its process until every agent has had a heartbeat accepted
// and the first `sync` of a new stream; then for as long as a host may be silent no host may have been declared lost, by the events
// that the store keeps.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Client, createClient, type FetchLike } from '../src/api/client/client.ts';
import type { Kind, ResourceByKind } from '../src/api/resources/index.ts';
import { freePort } from '../src/base/test-ports.ts';
import type { Emit } from './row.ts';
import { type ServerProcess, startServerProcess } from './server-process.ts';
import type { Backend } from './store-backends.ts';
import { fillStore, hostNameOf } from './store-fleet.ts';
import type { HerdInput, HerdMessage } from './store-herd-agents.ts';

const suite = 'store';
const hosts = 5_000;
const herds = 2;
const offlineAfterMs = 15_000;
/** While they join, one after the other, nothing is judged. */
const dayMs = 86_400_000;
const heartbeatMs = 5_000;
const awayMs = 18_000;
const fetchLike: FetchLike = (url, init) => fetch(url, init);

export async function measureHerd(backend: Backend, directory: string, emit: Emit): Promise<void> {
  const url = backend.storeUrl('herd');
  // Two instances a host: their streams have something to say.
  await fillStore(url, { hosts, instances: 2 * hosts, projects: 10, events: 0 });
  const listen = `127.0.0.1:${await freePort()}`;
  const start = (silenceMsMax: number): Promise<ServerProcess> =>
    startServerProcess(join(directory, `herd${backend.suffix}`), {
      listen,
      env: {
        BERTH_SERVER_STORE: url,
        BERTH_SERVER_OFFLINE_AFTER_MS: String(silenceMsMax),
        BERTH_SERVER_HEARTBEAT_MS: String(heartbeatMs),
      },
    });
  const children: Herd[] = [];
  let server = await start(dayMs);
  try {
    const all = Array.from({ length: hosts }, (_, i) => hostNameOf(i));
    const { url: serverUrl, hostToken } = server;
    for (let herd = 0; herd < herds; herd++) {
      const own = all.filter((_, i) => i % herds === herd);
      const agents = own.map((name) => ({ name, token: hostToken(name) }));
      children.push(startHerd({ url: serverUrl, heartbeatMs, agents }));
    }
    await Promise.all(children.map((child) => child.next('complete')));
    process.stderr.write(`  ${hosts} agents are there; the server is killed and stays away for ${awayMs / 1000} s …\n`);
    await server.kill();
    const waiting = children.map((child) => child.next('complete'));
    await new Promise((resolve) => setTimeout(resolve, awayMs));
    const startedAt = performance.now();
    server = await start(offlineAfterMs);
    const listensAt = performance.now();
    await Promise.all(waiting);
    const seconds = (performance.now() - startedAt) / 1000;
    await new Promise((resolve) =>
      setTimeout(resolve, Math.max(0, offlineAfterMs - (performance.now() - listensAt)) + 1_000),
    );
    const lost = await declaredLost(server);
    process.stderr.write(`  all are back after ${seconds.toFixed(1)} s; declared lost: ${lost.length} of ${hosts}\n`);
    if (lost.length > 0)
      throw new Error(`hosts were declared lost, though all came back: ${lost.slice(0, 5).join(', ')}`);
    emit({ suite, name: `herd_5k_s${backend.suffix}`, value: seconds, unit: 's', better: 'lower', goal: 60 });
  } finally {
    for (const child of children) child.end();
    await server.close();
  }
}

/** Hosts of which an event says so, and those that are not ready now. */
async function declaredLost({ url, operatorToken: token }: ServerProcess): Promise<string[]> {
  const client = createClient({ fetch: fetchLike, url, token });
  const silent = (await listAll(client, 'event')).filter(({ spec }) => spec.reason === 'AgentSilent');
  const present = await listAll(client, 'host');
  if (present.length !== hosts) throw new Error(`the server lists ${present.length} of ${hosts} hosts`);
  const unready = present.filter(
    ({ status }) => status.conditions.find(({ type }) => type === 'Ready')?.status !== 'True',
  );
  return [
    ...new Set([...silent.map(({ spec }) => spec.subject.name), ...unready.map(({ metadata }) => metadata.name)]),
  ];
}

async function listAll<K extends Kind>(client: Client, kind: K): Promise<ResourceByKind[K][]> {
  const items: ResourceByKind[K][] = [];
  for (let from: string | undefined, more = true; more; ) {
    const page = await client.list(kind, { limit: 5_000, ...(from === undefined ? {} : { continue: from }) });
    items.push(...page.items);
    from = page.continue;
    more = from !== undefined;
  }
  return items;
}

interface Herd {
  next(type: HerdMessage['type']): Promise<void>;
  end(): void;
}

function startHerd(input: HerdInput): Herd {
  const child: ChildProcess = fork(fileURLToPath(new URL('./store-herd-agents.ts', import.meta.url)), {
    serialization: 'advanced',
  });
  child.send(input);
  return {
    async next(type) {
      const gone = once(child, 'exit').then(() => {
        throw new Error('a process of agents ended early');
      });
      gone.catch(() => {});
      const [message]: HerdMessage[] = await Promise.race([once(child, 'message'), gone]);
      if (message?.type !== type) throw new Error(`a process of agents said ${message?.type} instead of ${type}`);
    },
    end: () => void child.kill('SIGKILL'),
  };
}
