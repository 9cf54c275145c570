import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../base/system.ts';
import { testHost } from '../../core/testing.ts';
import { readFenceHook } from './fence-config.ts';

let folder: string;
let server: Server | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-fence-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
  server?.close();
  server = undefined;
});

const [host] = testHost('h1', { status: { address: '192.0.2.7' } });
const { signal } = new AbortController();

async function script(text: string): Promise<string> {
  const path = join(folder, 'fence');
  await writeFile(path, `#!/bin/sh\n${text}`);
  await chmod(path, 0o755);
  return path;
}

const hookOf = async (config: object) => {
  const hook = await readFenceHook({ timeoutMs: 10_000, ...config }, systemClock);
  return hook ?? expect.unreachable();
};

it('runs a program with the host as its last words, and reads the last line of its status', async () => {
  const path = await script(
    `echo "$@" >> ${join(folder, 'calls')}\n[ "$2" = status ] && printf 'power is\\nOff\\n'\nexit 0`,
  );
  const hook = await hookOf({ command: [path, 'first'] });
  expect(await hook.off(host, signal)).toContain('exit code 0');
  expect(await hook.state(host, signal)).toBe('off');
  expect(await readFile(join(folder, 'calls'), 'utf8')).toBe('first off h1 192.0.2.7\nfirst status h1 192.0.2.7\n');
});

it('says with which code a program failed', async () => {
  const hook = await hookOf({ command: [await script('exit 3')] });
  await expect(hook.off(host, signal)).rejects.toThrow('off h1: exit code 3');
});

it('posts and reads back over HTTP, with its token', async () => {
  const asked: string[] = [];
  server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    response.end(JSON.stringify({ power: 'OFF' }));
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on TCP
  const tokenFile = join(folder, 'token');
  await writeFile(tokenFile, 'secret\n');
  const hook = await hookOf({ url: `http://127.0.0.1:${port}/power/{host}?at={address}`, tokenFile });
  expect(await hook.off(host, signal)).toBe('power off: status 200');
  expect(await hook.state(host, signal)).toBe('off');
  expect(asked).toEqual(['POST /power/h1?at=192.0.2.7 Bearer secret', 'GET /power/h1?at=192.0.2.7 Bearer secret']);
});

it('refuses neither and both of command and url', async () => {
  for (const config of [{}, { command: ['x'], url: 'http://x' }])
    await expect(readFenceHook({ timeoutMs: 1_000, ...config }, systemClock)).rejects.toThrow('one of command and url');
});
