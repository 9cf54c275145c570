// Real processes for the end-to-end tests: `berth server` and `berth agent` as users start them, killable at any moment.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePort } from '../src/base/test-ports.ts';
import { createClient } from '../src/api/client/client.ts';
import type { Instance } from '../src/api/resources/instance.ts';
import { hostTokenOf } from '../src/server/http/tokens.ts';
import { trustingFetch } from './certificate.ts';
import { expectConsistent } from './consistent.ts';
import { imageDirectory } from './tiny-image.ts';
import { ApiError } from '../src/api/errors.ts';

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));

export interface BerthProcess {
  readonly pid: number;
  /** Everything it has said on standard error. */
  said(): string;
  /** SIGKILL: no chance to tidy up. */
  kill(): Promise<void>;
  /** SIGTERM, as an operator stops it. */
  stop(): Promise<void>;
}

/** Resolves when the process has said something that `ready` matches; rejects when it ends before. */
export async function startBerth(
  argv: readonly string[],
  ready: RegExp,
  environment: Record<string, string> = {},
  program = main,
): Promise<BerthProcess> {
  const child = spawn(process.execPath, [program, ...argv], {
    cwd: import.meta.dirname, // in the project's own directory a server takes the example of an image map
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...environment },
  });
  let said = '';
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (bytes: Buffer) => {
      said += bytes.toString();
      if (ready.test(said)) resolve();
    });
    child.once('exit', () => reject(new Error(`berth ${argv[0]} ended: ${said}`)));
  });
  return {
    pid: child.pid ?? 0,
    said: () => said,
    kill: () => end(child, 'SIGKILL'),
    stop: () => end(child, 'SIGTERM'),
  };
}

/** A command that ends by itself. */
export async function runBerth(
  argv: readonly string[],
  environment: Record<string, string> = {},
): Promise<{ readonly stdout: string; readonly stderr: string; readonly code: number }> {
  try {
    const done = await promisify(execFile)(process.execPath, [main, ...argv], {
      env: { ...process.env, ...environment },
    });
    return { ...done, code: 0 };
  } catch (error) {
    const { stdout, stderr, code } = error as { stdout: string; stderr: string; code: number }; // as execFile rejects
    return { stdout, stderr, code };
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill(signal);
  await exited;
}

/** A fleet of one server and one host in `directory`. Both may be killed and started again on the same state. */
export async function startFleet(
  directory: string,
  options: {
    drivers?: string[];
    agentDirectory?: string;
    imageRoots?: string[];
    store?: string;
    containerEngine?: string;
    /** Instead of the sources: the program of a package. */
    program?: string;
    /** Further configuration of the agent, and of the server. */
    agent?: Readonly<Record<string, unknown>>;
    server?: Readonly<Record<string, unknown>>;
    /** Files of a certificate for 127.0.0.1 that vouches for itself, and of its key. */
    tls?: { certificate: string; key: string };
  } = {},
) {
  const port = await freePort();
  const { tls } = options;
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`;
  const trust: Record<string, string> = tls ? { NODE_EXTRA_CA_CERTS: tls.certificate } : {};
  const serverDirectory = join(directory, 'server');
  const agentDirectory = options.agentDirectory ?? join(directory, 'agent');
  await mkdir(directory, { recursive: true });
  const serverConfig = join(directory, 'server.yaml');
  await writeFile(
    serverConfig,
    JSON.stringify({
      listen: `127.0.0.1:${port}`,
      dataDirectory: serverDirectory,
      ...(options.store === undefined ? {} : { store: options.store }),
      ...(tls ? { tlsCertificate: tls.certificate, tlsKey: tls.key } : {}),
      restartDelayMs: 200,
      heartbeatMs: 500,
      offlineAfterMs: 60_000,
      ...options.server,
    }),
  );
  const startServer = () => startBerth(['server', '--config', serverConfig], /listens on/, {}, options.program);
  let server = await startServer();
  const operatorToken = (await readFile(join(serverDirectory, 'operator.token'), 'utf8')).trim();
  const secret = Buffer.from((await readFile(join(serverDirectory, 'secret'), 'utf8')).trim(), 'base64url');
  const agentConfig = join(directory, 'agent.yaml');
  await writeFile(
    agentConfig,
    JSON.stringify({
      serverUrl: url,
      ...options.agent,
      token: hostTokenOf(secret, 'h1', 0),
      hostName: 'h1',
      dataDirectory: agentDirectory,
      drivers: options.drivers ?? ['qemu'],
      ...(options.containerEngine === undefined ? {} : { containerEngine: options.containerEngine }),
      imageRoots: [directory, imageDirectory, ...(options.imageRoots ?? [])],
    }),
    { mode: 0o600 },
  );
  const startAgent = () => startBerth(['agent', '--config', agentConfig], /registered/, trust, options.program);
  let agent = await startAgent();
  let stopping: Promise<void> | undefined;
  const client = createClient({
    fetch: tls ? trustingFetch(await readFile(tls.certificate, 'utf8')) : (address, init) => fetch(address, init),
    url,
    token: operatorToken,
  });

  /** The instance once `holds` is true of it, followed by watch. Rejects after `timeoutMs` with what it was last. */
  async function until(name: string, holds: (instance: Instance) => boolean, timeoutMs = 60_000): Promise<Instance> {
    const timeout = AbortSignal.timeout(timeoutMs);
    let last: Instance | undefined;
    while (!timeout.aborted) {
      try {
        const { items, revision } = await client.list('instance');
        last = items.find((item) => item.metadata.name === name) ?? last;
        if (last && holds(last)) return last;
        for await (const change of client.watch('instance', { revision }, timeout)) {
          if (change.type !== 'put' || change.resource.metadata.name !== name) continue;
          last = change.resource;
          if (holds(last)) return last;
        }
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 100)); // the server is being killed and started by the test
      }
    }
    throw new Error(
      `instance ${name} did not come to it; last seen: ${JSON.stringify(last?.status)}\nagent: ${agent.said().slice(-3000)}`,
    );
  }

  return {
    url,
    client,
    until,
    agentDirectory,
    serverDirectory,
    environment: { ...trust, BERTH_URL: url, BERTH_TOKEN: operatorToken },
    ready: (name: string) => until(name, ({ status }) => status.guest?.ready === true || status.phase === 'Failed'),
    async gone(name: string): Promise<void> {
      for (;;) {
        const { items, revision } = await client.list('instance');
        if (!items.some((item) => item.metadata.name === name)) return;
        for await (const change of client.watch('instance', { revision }, AbortSignal.timeout(60_000))) {
          if (change.type === 'delete' && change.resource.metadata.name === name) return;
        }
      }
    },
    /** Every instance, however a test before has ended: a guest outlives its agent. */
    async removeAll(): Promise<void> {
      const { items } = await client.list('instance');
      for (const { metadata } of items)
        await client.delete('instance', metadata.name).catch((error: unknown) => {
          if (!(error instanceof ApiError && error.code === 'NotFound')) throw error; // it was being removed already
        });
      for (const { metadata } of items) await this.gone(metadata.name);
    },
    get serverPid() {
      return server.pid;
    },
    agentSaid: () => agent.said(),
    serverSaid: () => server.said(),
    killServer: () => server.kill(),
    async restartServer() {
      await server.kill();
      server = await startServer();
    },
    killAgent: () => agent.kill(),
    async restartAgent() {
      await agent.kill();
      agent = await startAgent();
    },
    /** At the first call; later ones wait for that. */
    stop(): Promise<void> {
      stopping ??= (async () => {
        try {
          await expectConsistent(client);
        } finally {
          await agent.stop();
          await server.stop();
        }
      })();
      return stopping;
    },
  };
}

export type Fleet = Awaited<ReturnType<typeof startFleet>>;
