// Three servers on etcd and an agent with guests, all of one version, are replaced by another version one after the other, while clients read and
// write. For the test and for the bench.

import { execFileSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from '../../src/api/client/client.ts';
import { Servers } from '../../src/api/client/servers.ts';
import { createUserClient, type UserClient } from '../../src/api/client/user-client.ts';
import { ApiError } from '../../src/api/errors.ts';
import type { Instance } from '../../src/api/resources/instance.ts';
import { systemClock, systemPrng } from '../../src/base/system.ts';
import { freePort } from '../../src/base/test-ports.ts';
import { hostTokenOf } from '../../src/server/http/tokens.ts';
import { startEtcd } from '../../src/store/etcd/test-etcd.ts';
import { type BerthProcess, startBerth } from '../processes.ts';
import { imageDirectory, tinyImage } from '../tiny-image.ts';
import type { BuiltPackage } from './built-package.ts';

const names = ['cp1', 'cp2', 'cp3'];

export class UpgradedFleet {
  readonly #directory: string;
  readonly #driver: 'qemu' | 'fake';
  readonly #servers = new Map<string, BerthProcess>();
  #etcd: Awaited<ReturnType<typeof startEtcd>> | undefined;
  #agent: BerthProcess | undefined;
  #client: UserClient | undefined;
  urls: readonly string[] = [];
  environment: Readonly<Record<string, string>> = {};

  constructor(directory: string, driver: 'qemu' | 'fake') {
    this.#directory = directory;
    this.#driver = driver;
  }

  get client(): UserClient {
    if (this.#client === undefined) throw new Error('the fleet was not started');
    return this.#client;
  }

  async start({ program }: BuiltPackage): Promise<void> {
    this.#etcd = await startEtcd({ size: 1 });
    const ports = await Promise.all(names.map(() => freePort()));
    this.urls = ports.map((port) => `http://127.0.0.1:${port}`);
    await mkdir(this.#directory, { recursive: true });
    for (const name of names) {
      const url = this.#urlOf(name);
      const settings = {
        listen: new URL(url).host,
        advertiseUrl: url,
        store: `etcd:${this.#etcd.rest('upgrade')}`,
        dataDirectory: join(this.#directory, name),
        heartbeatMs: 500,
        offlineAfterMs: 60_000,
        leaderLeaseMs: 2_000,
      };
      await writeFile(join(this.#directory, `${name}.yaml`), JSON.stringify(settings));
      await this.startServer(name, program); // the first makes the admin token
    }
    const read = async (file: string): Promise<string> =>
      (await readFile(join(this.#directory, 'cp1', file), 'utf8')).trim();
    const token = await read('operator.token');
    const hostSecret = Buffer.from(await read('secret'), 'base64url');
    const agent = {
      serverUrl: this.urls.join(','),
      token: hostTokenOf(hostSecret, 'h1', 0),
      hostName: 'h1',
      dataDirectory: join(this.#directory, 'agent'),
      drivers: [this.#driver],
      imageRoots: [imageDirectory],
      capacity: { VCPU: 16, MEMORY_MB: 16_384, DISK_GB: 100 },
    };
    await writeFile(join(this.#directory, 'agent.yaml'), JSON.stringify(agent), { mode: 0o600 });
    await this.startAgent(program);
    this.environment = { BERTH_URL: this.urls.join(','), BERTH_TOKEN: token };
    this.#client = this.newClient();
    const spec =
      this.#driver === 'qemu'
        ? (await tinyImage()).spec
        : { source: 'file:///tiny.img', format: 'raw' as const, defaults: { cpus: 1, memoryMiB: 64 } };
    await this.client.create('image', { metadata: { name: 'tiny' }, spec });
  }

  /** As a program of a user that knows all servers. */
  newClient(): UserClient {
    return createUserClient({
      fetch: (address, init) => fetch(address, init),
      url: new Servers({
        urls: this.urls,
        spread: { clock: systemClock, prng: systemPrng() },
        answerMsMax: 5_000,
      }),
      token: this.environment['BERTH_TOKEN'] ?? '',
    });
  }

  async instance(name: string, holds: (instance: Instance) => boolean): Promise<Instance> {
    for (;;) {
      const { items, revision } = await this.client.list('instance');
      const now = items.find(({ metadata }) => metadata.name === name);
      if (now && holds(now)) return now;
      try {
        for await (const change of this.client.watch('instance', { revision }, AbortSignal.timeout(60_000)))
          if (change.type === 'put' && change.resource.metadata.name === name && holds(change.resource))
            return change.resource;
      } catch (error) {
        if (!(error instanceof ApiError)) throw error; // its server was stopped: again, over another
      }
    }
  }

  /** One server after the other: stopped, started as the other version, and ready before the next. */
  async upgradeServers({ program }: BuiltPackage): Promise<void> {
    for (const name of names) {
      await this.#servers.get(name)?.stop();
      await this.startServer(name, program);
      const client = createClient({ fetch: (address, init) => fetch(address, init), url: this.#urlOf(name) });
      while (!(await isReady(client))) await pause(20);
    }
  }

  async upgradeAgent({ program }: BuiltPackage): Promise<void> {
    await this.#agent?.stop();
    await this.startAgent(program);
  }

  async startServer(name: string, program: string): Promise<void> {
    const words = ['server', '--config', join(this.#directory, `${name}.yaml`)];
    this.#servers.set(name, await startBerth(words, /listens on/, {}, program));
  }

  async startAgent(program: string): Promise<void> {
    const words = ['agent', '--config', join(this.#directory, 'agent.yaml')];
    this.#agent = await startBerth(words, /registered/, {}, program);
  }

  async gone(name: string): Promise<void> {
    for (;;) {
      const { items, revision } = await this.client.list('instance');
      if (!items.some(({ metadata }) => metadata.name === name)) return;
      for await (const change of this.client.watch('instance', { revision }, AbortSignal.timeout(60_000)))
        if (change.type === 'delete' && change.resource.metadata.name === name) return;
    }
  }

  /** Of the QEMU of an instance. */
  guestPid(id: string): number {
    return Number(execFileSync('pgrep', ['-f', `guest=${id}`], { encoding: 'utf8' }).split('\n')[0]);
  }

  /** What it said, for a test that fails. */
  said(): string {
    return [this.#agent, ...this.#servers.values()].map((process) => process?.said().slice(-2_000)).join('\n\n');
  }

  async stop(): Promise<void> {
    await Promise.allSettled([this.#agent?.stop(), ...[...this.#servers.values()].map((server) => server.stop())]);
    await this.#etcd?.stop();
  }

  #urlOf(name: string): string {
    return this.urls[names.indexOf(name)] ?? '';
  }
}

async function isReady(client: ReturnType<typeof createClient>): Promise<boolean> {
  try {
    await client.json('/readyz');
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.code === 'Unavailable') return false;
    throw error;
  }
}

export interface LoadResult {
  readonly requests: number;
  /** What a user would have seen: errors after all that a client does by itself. */
  readonly errors: readonly string[];
  /** The longest time between two successes, or from the begin or to the end. */
  readonly gapMs: number;
}

/** One request after the other, until `over`. */
async function loop(request: (count: number) => Promise<unknown>, over: AbortSignal): Promise<LoadResult> {
  const errors: string[] = [];
  let requests = 0;
  let gapMs = 0;
  let lastMs = performance.now();
  while (!over.aborted) {
    requests += 1;
    try {
      await request(requests);
      const nowMs = performance.now();
      gapMs = Math.max(gapMs, nowMs - lastMs);
      lastMs = nowMs;
    } catch (error) {
      errors.push(String(error));
    }
    await pause(5); // a steady load, not the most that there can be
  }
  return { requests, errors, gapMs: Math.max(gapMs, performance.now() - lastMs) };
}

export interface Load {
  /** Ends it. */
  stop(): Promise<{ readonly reads: LoadResult; readonly writes: LoadResult }>;
}

/** A client that reads and one that writes. */
export function startLoad(fleet: UpgradedFleet): Load {
  const over = new AbortController();
  const [reader, writer] = [fleet.newClient(), fleet.newClient()];
  const reads = loop(() => reader.list('host'), over.signal);
  const writes = loop(async (count) => {
    const name = `size-${count}`;
    await writer
      .create('size', { metadata: { name }, spec: { cpus: 1, memoryMiB: 64 } })
      .catch(unlessDone('AlreadyExists'));
    await writer.delete('size', name).catch(unlessDone('NotFound'));
  }, over.signal);
  return {
    async stop() {
      over.abort();
      return { reads: await reads, writes: await writes };
    },
  };
}

/** A request whose answer was lost with its server may have been carried out. */
function unlessDone(code: ApiError['code']): (error: unknown) => void {
  return (error) => {
    if (!(error instanceof ApiError && error.code === code)) throw error;
  };
}
