// The fleet under test: real servers and agents as processes, each on a machine of its own.

import { spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Client, createClient } from '../../src/api/client/client.ts';
import type { AgentConfig } from '../../src/agent/config.ts';
import { defaultPolicy, type Policy } from '../../src/core/state/context.ts';
import type { ServerConfig } from '../../src/server/config.ts';
import { hostTokenOf } from '../../src/server/http/tokens.ts';
import type { CrucibleAgent } from './agent.ts';
import { Daemon } from './daemon.ts';
import type { Network } from './network.ts';

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const agentProgram = fileURLToPath(new URL('./agent.ts', import.meta.url));

/** As all control planes have it. */
export const policy: Policy = {
  ...defaultPolicy,
  cpuAllocationRatio: 1, // so that hosts fill up
  heartbeatMs: 1_000,
  offlineAfterMs: 12_000, // shorter than the longest stop, longer than any restart
  restartDelayMs: 500,
};
/** The default of `berth server`. */
export const leaderLeaseMs = 6_000;

export interface ControlPlane {
  readonly machine: string;
  readonly url: string;
  readonly daemon: Daemon;
  readonly dataDirectory: string;
}

export interface Host {
  readonly machine: string;
  readonly daemon: Daemon;
}

export interface Fleet {
  readonly controlPlanes: readonly ControlPlane[];
  readonly hosts: readonly Host[];
  readonly operatorToken: string;
  /** Of one control plane. Calls that get no answer for a while are given up. */
  client(plane: ControlPlane): Client;
  /** What `berth ARGUMENTS` prints; it speaks to `plane`. */
  readonly berth: (plane: ControlPlane | undefined, ...argv: readonly string[]) => Promise<CommandOutcome>;
}

export interface CommandOutcome {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface FleetParts {
  readonly folder: string;
  readonly logs: string;
  readonly network: Network;
  readonly storeUrl: string;
  readonly planes: readonly string[];
  readonly hosts: readonly string[];
  readonly worldSocket: string;
  /** Called as each life of a control plane begins; what it returns, at the end of that life. */
  readonly onServerStart: () => () => void;
}

const answerTimeoutMs = 4_000;

/** Resolves when every control plane answers and every host has registered. */
export async function startFleet(parts: FleetParts): Promise<Fleet> {
  const { folder, logs, network, storeUrl } = parts;
  const controlPlanes: ControlPlane[] = [];
  for (const machine of parts.planes) {
    const dataDirectory = join(folder, machine);
    const listen = `${network.addressOf(machine)}:7070`;
    const config: Partial<ServerConfig> = {
      listen,
      store: storeUrl,
      dataDirectory,
      insecureHttp: true,
      leaderLeaseMs,
      offlineAfterMs: policy.offlineAfterMs,
      heartbeatMs: policy.heartbeatMs,
      restartDelayMs: policy.restartDelayMs,
      cpuAllocationRatio: policy.cpuAllocationRatio,
    };
    const file = join(folder, `${machine}.json`);
    await writeFile(file, JSON.stringify(config));
    const argv = [process.execPath, main, 'server', '--config', file];
    const logFile = join(logs, `${machine}.log`);
    const daemon = new Daemon({ name: machine, machine, argv, cwd: folder, logFile, onStart: parts.onServerStart });
    controlPlanes.push({ machine, url: `http://${listen}`, daemon, dataDirectory });
  }
  const [first, ...others] = controlPlanes;
  if (first === undefined) throw new Error('a fleet has at least one control plane');
  first.daemon.start();
  await untilReady(first);
  for (const { daemon } of others) daemon.start();

  const operatorToken = (await readFile(join(first.dataDirectory, 'operator.token'), 'utf8')).trim();
  const secret = Buffer.from((await readFile(join(first.dataDirectory, 'secret'), 'utf8')).trim(), 'base64url');
  const hosts: Host[] = [];
  for (const [number, machine] of parts.hosts.entries()) {
    const dataDirectory = join(folder, machine);
    await mkdir(dataDirectory);
    const agent: Partial<AgentConfig> = {
      token: hostTokenOf(secret, machine, 0),
      hostName: machine,
      dataDirectory,
      drivers: ['fake'],
      capacity: { VCPU: 16, MEMORY_MB: 16_384, DISK_GB: 200 },
    };
    const whole: CrucibleAgent = {
      agent,
      controlPlanes: controlPlanes.map(({ url }) => url),
      worldSocket: parts.worldSocket,
      number,
    };
    const file = join(folder, `${machine}.json`);
    await writeFile(file, JSON.stringify(whole), { mode: 0o600 });
    const argv = [process.execPath, agentProgram, file];
    const daemon = new Daemon({ name: machine, machine, argv, cwd: folder, logFile: join(logs, `${machine}.log`) });
    daemon.start();
    hosts.push({ machine, daemon });
  }
  await Promise.all(others.map(untilReady));

  const client = (plane: ControlPlane): Client =>
    createClient({
      url: plane.url,
      token: operatorToken,
      fetch: (url, init) => {
        const timeout = AbortSignal.timeout(answerTimeoutMs);
        // A watch has a signal of its own, and may be silent for longer.
        return fetch(url, { ...init, signal: init.signal ?? timeout });
      },
    });
  const berth: Fleet['berth'] = async (plane, ...argv) => {
    const child = spawn(process.execPath, [main, ...argv], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        ...(plane ? { BERTH_URL: plane.url, BERTH_TOKEN: operatorToken, BERTH_INSECURE_HTTP: 'true' } : {}),
      },
    });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (text: Buffer) => (stdout += text.toString()));
    child.stderr.on('data', (text: Buffer) => (stderr += text.toString()));
    const exitCode = await new Promise<number>((resolve) => child.on('close', (code) => resolve(code ?? 1)));
    return { exitCode, stdout, stderr };
  };
  const fleet: Fleet = { controlPlanes, hosts, operatorToken, client, berth };
  await untilHosts(fleet);
  return fleet;
}

const startLimitMs = 60_000;

export async function untilReady({ machine, url }: ControlPlane): Promise<void> {
  const ready = async (): Promise<boolean> => (await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(1_000) })).ok;
  const deadlineMs = performance.now() + startLimitMs;
  while (!(await ready().catch(() => false))) {
    if (performance.now() > deadlineMs) throw new Error(`${machine} is not ready within ${startLimitMs / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function untilHosts(fleet: Fleet): Promise<void> {
  const [plane] = fleet.controlPlanes;
  if (plane === undefined) return;
  const deadlineMs = performance.now() + startLimitMs;
  for (;;) {
    const { items } = await fleet.client(plane).list('host');
    const ready = items.filter(({ status }) =>
      status.conditions.some((each) => each.type === 'Ready' && each.status === 'True'),
    );
    if (ready.length === fleet.hosts.length) return;
    if (performance.now() > deadlineMs) throw new Error(`only ${ready.length} hosts are ready; see their logs`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
