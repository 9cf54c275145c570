// The archive for those who help from afar: what is in it, and that secrets are not.

import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startTestServer } from '../src/server/testing.ts';

const run = promisify(execFile);
let server: Awaited<ReturnType<typeof startTestServer>>;
let directory: string;
beforeEach(async () => {
  server = await startTestServer();
  directory = await mkdtemp(join(tmpdir(), 'berth-bundle-'));
});
afterEach(async () => {
  await server.close();
  await rm(directory, { recursive: true });
});

const planted = 'planted-5f1c';

it('has the state of the fleet, and no planted secret', async () => {
  const { client } = server;
  await client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
  await client.create('instance', {
    metadata: { name: 'web' },
    spec: { image: 'tiny', cpus: 1, userData: `#!/bin/sh\n# ${planted}\n` },
  });
  await client.create('workload', {
    metadata: { name: 'shop' },
    spec: {
      replicas: 1,
      template: { spec: { image: 'tiny', cpus: 1, userData: `#!/bin/sh\n# ${planted}\n` } },
    } as never,
  });
  const file = join(directory, 'bundle.tar.gz');
  const env = {
    ...process.env,
    BERTH_URL: server.url,
    BERTH_TOKEN: 'operator',
    BERTH_CONFIG: join(directory, 'none.yaml'),
  };
  const main = new URL('../src/main.ts', import.meta.url).pathname;
  const { stdout } = await run(process.execPath, [main, 'debug', 'bundle', file], { env });
  expect(stdout).toContain('9 of 9 parts');
  await run('tar', ['-xzf', file, '-C', directory]);
  const names = await readdir(directory);
  expect(names).toEqual(
    expect.arrayContaining(['events.json', 'hosts.json', 'metrics.txt', 'queue.json', 'verify.json']),
  );
  for (const name of names.filter((each) => /\.(json|txt)$/.test(each))) {
    const text = await readFile(join(directory, name), 'utf8');
    expect([name, text.includes(planted), text.includes('operator')]).toEqual([name, false, false]);
  }
});
