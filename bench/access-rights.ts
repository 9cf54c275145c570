// Rows `auth_overhead_pct`, `auth_overhead_cpu_pct` and `list_filtered_ratio`: what it costs that the caller of each request and each list may
// see and do a part only. One server, with 100 projects and 1,000 bindings.

import { join } from 'node:path';
import { createClient } from '../src/api/client/client.ts';
import { agentClientOf } from './agent-client.ts';
import { hosts, overheadOf, overheadRows } from './access-creates.ts';
import type { Target } from './raw-http.ts';
import { type Emit, median } from './row.ts';
import { type ServerProcess, startServerProcess } from './server-process.ts';

const projects = 100;
const bindings = 1_000;
const perProject = 1_000;
const pageMax = 1_000;
const rounds = 15;
const env = {
  BERTH_SERVER_OFFLINE_AFTER_MS: '86400000',
  BERTH_SERVER_AUDIT: 'false',
  // One token is limited to less than the server can do.
  BERTH_SERVER_LIMITS: 'tokenRequestsPerSecond=1000000,tokenBurst=10000000',
};
const image = { metadata: { name: 'bench' }, spec: { source: 'file:///nowhere' } };
const spec = { image: 'bench', cpus: 1, memoryMiB: 64 };
const projectOf = (i: number): string => `p${i}`;

/** Creates by the bearer of a token with a role in one project, against those of the admin token, whose rights are not looked up. */
export async function authOverhead(directory: string, emit: Emit): Promise<void> {
  const server = await startServerProcess(join(directory, 'rights'), { env });
  try {
    for (let i = 0; i < hosts; i++) await agentClientOf(server, `bench-${i}`);
    const client = operatorOf(server);
    await client.create('image', image);
    for (let i = 0; i < bindings; i++) {
      const subjects = [{ kind: 'token' as const, name: i === 0 ? 'user' : `other-${i}` }];
      const binding = { role: 'user', project: projectOf(i % projects), subjects };
      await client.create('binding', { metadata: { name: `b${i}` }, spec: binding });
    }
    const user: Target = { url: server.url, token: await tokenOf(server, 'user') };
    const admin: Target = { url: server.url, token: server.operatorToken };
    const project = projectOf(0);
    const { pid } = server;
    const overhead = await overheadOf(
      { target: user, pid, name: 'role', project },
      { target: admin, pid, name: 'admin', project },
      rounds,
    );
    for (const row of overheadRows('auth_overhead', overhead)) emit(row);
  } finally {
    await server.close();
  }
}

/** A list of the 1,000 instances that the caller may read: among 100,000, over alone. */
export async function listFiltered(directory: string, emit: Emit): Promise<void> {
  const many = await startServerProcess(join(directory, 'many'), { env });
  const few = await startServerProcess(join(directory, 'few'), { env });
  try {
    await fill(many, projects);
    await fill(few, 1);
    const askMany = await listing(many);
    const askFew = await listing(few);
    const ratios: number[] = [];
    for (let round = 0; round < 40; round++) {
      const among = await askMany();
      const alone = await askFew();
      if (round >= 10) ratios.push(among / alone);
    }
    const value = median(ratios);
    emit({ ...row('list_filtered_ratio', value, 'ratio'), goal: 1.5, limit: 3, ratio: value / 3 });
  } finally {
    await many.close();
    await few.close();
  }
}

function row(name: string, value: number, unit: string) {
  return { suite: 'access', name, value, unit, better: 'lower' } as const;
}

function operatorOf({ url, operatorToken: token }: ServerProcess) {
  return createClient({ fetch: (address, init) => fetch(address, init), url, token });
}

/** Its rights are those of bindings to its name. */
async function tokenOf(server: ServerProcess, name: string): Promise<string> {
  const issued = await operatorOf(server).createToken({ metadata: { name, labels: {} }, spec: { description: '' } });
  return issued.token;
}

async function fill(server: ServerProcess, count: number): Promise<void> {
  const client = operatorOf(server);
  await client.create('image', image);
  for (let i = 0; i < count; i++) {
    const project = projectOf(i);
    const names = Array.from({ length: perProject }, (_, n) => `i${n}`);
    await client.createInstances(names.map((name) => ({ metadata: { name, project }, spec })));
  }
}

/** Milliseconds of one list, over a kept connection. */
async function listing(server: ServerProcess): Promise<() => Promise<number>> {
  const subjects = [{ kind: 'token' as const, name: 'reader' }];
  const binding = { role: 'viewer', project: projectOf(0), subjects };
  await operatorOf(server).create('binding', { metadata: { name: 'reader' }, spec: binding });
  const token = await tokenOf(server, 'reader');
  return async () => {
    const startedAt = performance.now();
    const answer = await fetch(`${server.url}/v1/instances?limit=${pageMax}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const text = await answer.text();
    const took = performance.now() - startedAt;
    if (!text.includes(`"i${perProject - 1}"`)) throw new Error(`the list is not whole: ${text.slice(0, 200)}`);
    return took;
  };
}
