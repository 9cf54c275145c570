// An image from the command line through the control plane to the cache of a host: real server, real gate, real agent.

import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { AgentConfig } from '../src/agent/config.ts';
import { inspectImage } from '../src/agent/images/unpack/inspect-image.ts';
import { sha256, testImage } from '../src/agent/images/test-images.ts';
import { qcow2File } from '../src/agent/images/test-qcow2.ts';
import { startAgent } from '../src/agent/run.ts';
import { createClient } from '../src/api/client/client.ts';
import { parse } from '../src/api/parse.ts';
import { silentLogger } from '../src/base/log.ts';
import { systemFetch } from '../src/base/system.ts';
import { ServerConfig } from '../src/server/config.ts';
import { type RunningServer, startServer } from '../src/server/run.ts';
import { runBerth } from './processes.ts';

let directory = '';
let server: RunningServer;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-upload-'));
  const config = {
    listen: '127.0.0.1:0',
    dataDirectory: join(directory, 'server'),
    store: 'memory:',
    heartbeatMs: 200,
  };
  server = await startServer(parse(ServerConfig, config), { log: silentLogger, inspectImage });
});
afterEach(async () => {
  await server.close();
  await rm(directory, { recursive: true });
});

const berth = (...words: string[]) => runBerth(words, { BERTH_URL: server.url, BERTH_TOKEN: server.operatorToken });
const client = () =>
  createClient({ fetch: (url, init) => systemFetch(url, init), url: server.url, token: server.operatorToken });

it('an uploaded image is on a host, the same as it was on disk', async () => {
  // More than one piece of it, and data that does not compress.
  const raw = join(directory, 'disk.raw');
  execFileSync('dd', ['if=/dev/urandom', `of=${raw}`, 'bs=1M', 'count=20'], { stdio: 'ignore' });
  const plain = execFileSync('cat', [raw], { maxBuffer: 1 << 26 });
  const packed = join(directory, 'disk.raw.zst');
  await writeFile(packed, zstdCompressSync(plain));
  const upload = await berth('image', 'upload', packed, 'disk', '--format', 'raw', '--cpus', '1', '--memory', '512M');
  expect(upload).toEqual({ code: 0, stderr: expect.anything(), stdout: 'image disk uploaded (20.0 MiB)\n' });
  const image = await client().get('image', 'disk');
  expect(image.spec).toMatchObject({ decompress: 'zstd', defaults: { cpus: 1, memoryMiB: 512 } });
  await client().replace('image', 'disk', { spec: { ...image.spec, preload: true } });

  const agent = await startAgent(
    parse(AgentConfig, {
      serverUrl: server.url,
      token: server.hostToken('h1'),
      hostName: 'h1',
      dataDirectory: join(directory, 'agent'),
      imagePrivateAddresses: 'deny', // its own server it may ask anyway
      imageChecksums: 'required',
    }),
    { log: silentLogger },
  );
  try {
    expect((await berth('image', 'pull', 'disk')).stdout).toContain(sha256(plain).slice(0, 19));
    const { status } = await client().get('host', 'h1');
    expect(status.images).toMatchObject([{ name: 'disk', digest: sha256(plain), checksum: image.spec.checksum }]);
  } finally {
    await agent.close();
  }
});

it('what every host would refuse is not accepted', async () => {
  const path = join(directory, 'bad.qcow2');
  for (const [bytes, message] of [
    [qcow2File({ backingFileOffset: 112n, backingFileSize: 11 }), 'it has a backing file'],
    [testImage().subarray(0, 300_000), 'it was cut off'],
    [Buffer.from('# Disk DescriptorFile\nRW 1 FLAT "/etc/shadow" 0\n'), 'its content is vmdk'],
  ] as const) {
    await writeFile(path, bytes);
    const { code, stderr } = await berth('image', 'upload', path, 'bad');
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  }
  await expect(client().get('image', 'bad')).rejects.toMatchObject({ code: 'NotFound' });
});
