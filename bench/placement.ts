// Suite `placement`: claims through the Placement API, as a client of OpenStack makes them: ask for candidates, then claim one. The original,
// with SQLite behind it, makes 6.7 to 11 claims a second on 1,000 providers, and 1.8 on 5,000.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { connectRaw, encodeRequest, type RawAnswer, type RawConnection } from './raw-http.ts';
import { runMemory } from './placement-memory.ts';
import { type Emit, median, percentile } from './row.ts';
import { buildProduct, type ServerProcess, startServerProcess } from './server-process.ts';

const suite = 'placement';
const providerCounts = [1_000, 5_000] as const;
const clientsAtOnce = 16;
const claims = 2_000;
const questions = 1_000;
const query = '/placement/allocation_candidates?resources=VCPU:1,MEMORY_MB:512,DISK_GB:5&limit=10';

/** Takes two minutes. */
export async function run(emit: Emit): Promise<void> {
  buildProduct();
  await runMemory(emit);
  for (const count of providerCounts) await onProviders(count, emit);
}

async function onProviders(count: number, emit: Emit): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-placement-'));
  const server = await startServerProcess(directory);
  try {
    const client = new PlacementClient(
      server,
      await Promise.all(Array.from({ length: clientsAtOnce }, () => connectRaw(server.url))),
    );
    await client.createProviders(count);
    const size = `${count / 1_000}k`;
    await client.claimAll(200, clientsAtOnce); // compiled code for both
    const oneAfterTheOther = await client.claimAll(claims / 4, 1);
    const atOnce = await client.claimAll(claims, clientsAtOnce);
    const row = { suite, unit: '1/s', better: 'higher', goal: 2_000 } as const;
    emit({ ...row, name: `claims_one_by_one_per_s_${size}`, value: oneAfterTheOther, goal: 500 });
    emit({ ...row, name: `claims_per_s_${size}`, value: atOnce });
    const times = await client.candidateTimes();
    const time = { suite, unit: 'ms', better: 'lower' } as const;
    emit({ ...time, name: `candidates_p50_ms_${size}`, value: median(times), goal: 2 });
    emit({ ...time, name: `candidates_p99_ms_${size}`, value: percentile(times, 0.99), goal: 5 });
    client.close();
  } finally {
    await server.close();
    await rm(directory, { recursive: true, force: true });
  }
}

class PlacementClient {
  readonly #server: ServerProcess;
  readonly #connections: readonly RawConnection[];

  constructor(server: ServerProcess, connections: readonly RawConnection[]) {
    this.#server = server;
    this.#connections = connections;
  }

  async createProviders(count: number): Promise<void> {
    await this.#inTurns(count, clientsAtOnce, async (at, by) => {
      const uuid = randomUUID();
      await this.#ask('POST', '/placement/resource_providers', { by, body: { name: `bench-${at}`, uuid } });
      const units = { max_unit: 64 };
      const inventories = { VCPU: { total: 64, ...units }, MEMORY_MB: { total: 262_144 }, DISK_GB: { total: 4_000 } };
      const body = { resource_provider_generation: 0, inventories };
      await this.#ask('PUT', `/placement/resource_providers/${uuid}/inventories`, { by, body });
    });
  }

  /** Claims in a second. */
  async claimAll(count: number, clients: number): Promise<number> {
    const beganMs = performance.now();
    await this.#inTurns(count, clients, (_, by) => this.#claim(by));
    return (1_000 * count) / (performance.now() - beganMs);
  }

  /** One after the other, on a server that does nothing else. */
  async candidateTimes(): Promise<number[]> {
    const times: number[] = [];
    for (let at = 0; at < questions; at++) {
      const beganMs = performance.now();
      await this.#ask('GET', query, { by: 0 });
      times.push(performance.now() - beganMs);
    }
    return times;
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
  }

  /** Candidates in turn until one holds, as clients do. */
  async #claim(by: number): Promise<void> {
    const { body } = await this.#ask('GET', query, { by });
    const { allocation_requests: requests } = JSON.parse(body.toString()) as CandidateList; // the shape of 1.12 and later
    for (const { allocations } of requests) {
      const claim = { allocations, project_id: 'bench', user_id: 'bench', consumer_generation: null };
      const path = `/placement/allocations/${randomUUID()}`;
      const { status } = await this.#ask('PUT', path, { by, body: claim, alsoStatus: 409 });
      if (status === 204) return;
    }
    throw new Error('no candidate could be claimed');
  }

  async #inTurns(count: number, clients: number, act: (at: number, by: number) => Promise<void>): Promise<void> {
    let next = 0;
    const work = async (by: number): Promise<void> => {
      while (next < count) await act(next++, by);
    };
    await Promise.all(Array.from({ length: clients }, (_, by) => work(by)));
  }

  async #ask(
    method: string,
    path: string,
    { by, body, alsoStatus }: { readonly by: number; readonly body?: object; readonly alsoStatus?: number },
  ): Promise<RawAnswer> {
    const target = { url: this.#server.url, token: this.#server.operatorToken };
    const plain = encodeRequest(target, method, path, body ?? {}).toString();
    const request = Buffer.from(plain.replace('\r\n', '\r\nopenstack-api-version: placement 1.29\r\n'));
    const answer = await new Promise<RawAnswer>((resolve) => this.#connections[by]?.send(request, resolve));
    if (answer.status < 300 || answer.status === alsoStatus) return answer;
    throw new Error(`${method} ${path} answered ${answer.status}: ${answer.body.toString().slice(0, 300)}`);
  }
}

interface CandidateList {
  readonly allocation_requests: readonly { readonly allocations: object }[];
}
