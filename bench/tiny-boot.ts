// From the create of a tiny VM to its greeting, through the whole product: server, agent and QEMU as processes of their own.
// The limit is the same image under the same QEMU with nothing of Berth around it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient } from '../src/api/client/client.ts';
import { bareBootMs } from './bare-boot.ts';
import { type Emit, median } from './row.ts';
import { program, startServerProcess } from './server-process.ts';
import { imageDirectory, tinyImage } from '../test/tiny-image.ts';

const boots = 5;

export async function bootTiny(directory: string, emit: Emit): Promise<void> {
  const tiny = await tinyImage();
  const server = await startServerProcess(join(directory, 'boot-server'));
  let agent: { close(): Promise<void> } | undefined;
  try {
    agent = await startAgentProcess(join(directory, 'boot-agent'), server.url, server.hostToken('bench'));
    const client = createClient({
      fetch: (url, init) => fetch(url, init),
      url: server.url,
      token: server.operatorToken,
    });
    await client.create('image', { metadata: { name: 'tiny' }, spec: tiny.spec });
    const times: number[] = [];
    const limits: number[] = [];
    for (let i = 0; i < boots; i++) {
      const { revision } = await client.list('instance');
      const startedAt = performance.now();
      const made = await client.create('instance', {
        spec: { image: 'tiny', cpus: 1, memoryMiB: 128, stopGraceMs: 0 },
      });
      for await (const change of client.watch('instance', { revision }, AbortSignal.timeout(60_000))) {
        if (change.type === 'put' && change.resource.status.phase === 'Failed')
          throw new Error(JSON.stringify(change.resource.status));
        if (change.type === 'put' && change.resource.status.guest?.ready) break;
      }
      times.push(performance.now() - startedAt);
      await client.delete('instance', made.metadata.name);
      for await (const change of client.watch('instance', { revision }, AbortSignal.timeout(60_000)))
        if (change.type === 'delete') break;
      limits.push(await bareBootMs(tiny.path, directory));
    }
    const value = median(times.slice(1)); // the first one fills the image cache
    const limit = median(limits);
    emit({
      suite: 'main',
      name: 'tiny_boot_ms',
      value,
      unit: 'ms',
      better: 'lower',
      goal: 6000,
      limit,
      ratio: value / limit,
    });
  } finally {
    await agent?.close();
    await server.close();
  }
}

async function startAgentProcess(directory: string, url: string, token: string): Promise<{ close(): Promise<void> }> {
  await mkdir(directory, { recursive: true });
  const config = join(directory, 'agent.yaml');
  const settings = {
    serverUrl: url,
    token,
    hostName: 'bench',
    dataDirectory: join(directory, 'data'),
    drivers: ['qemu'],
    imageRoots: [imageDirectory],
  };
  await writeFile(config, JSON.stringify(settings), { mode: 0o600 });
  const child = spawn(process.execPath, [program, 'agent', '--config', config], {
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  let said = '';
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (bytes: Buffer) => {
      said += bytes.toString();
      if (/"msg":"registered"/.test(said)) resolve();
    });
    child.once('exit', () => reject(new Error(`the agent ended: ${said}`)));
  });
  return {
    async close() {
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      await exited;
    },
  };
}
