// An image of what a guest has on its disk: real processes, real QEMU. What runs from it has what the first one had.

import { execFileSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runBerth, startFleet } from './processes.ts';
import { tinyImage } from './tiny-image.ts';

let directory: string;
let fleet: Awaited<ReturnType<typeof startFleet>>;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-from-'));
  fleet = await startFleet(directory);
  await fleet.client.create('image', { metadata: { name: 'tiny' }, spec: (await tinyImage()).spec });
});
afterAll(async () => {
  for (const name of ['web', 'second']) await fleet.client.delete('instance', name).catch(() => undefined); // a failed test may not have made it
  for (const name of ['web', 'second']) await fleet.gone(name);
  await fleet.stop();
  await rm(directory, { recursive: true, force: true });
});

const berth = (...words: string[]) => runBerth(words, fleet.environment);
const run = async (name: string, image: string) => {
  await fleet.client.create('instance', {
    metadata: { name },
    spec: { image, cpus: 1, memoryMiB: 128, stopGraceMs: 0 },
  });
  return fleet.ready(name);
};

it('is made of a stopped one only, and has its content', async () => {
  const web = await run('web', 'tiny');
  const running = await berth('image', 'create', 'snap', '--from', 'web');
  expect(running).toMatchObject({ code: 5, stderr: expect.stringContaining('only a stopped one') });

  await fleet.client.replace('instance', 'web', { spec: { ...web.spec, powerState: 'stopped' } });
  await fleet.until('web', ({ status }) => status.phase === 'Stopped');
  const folder = join(fleet.agentDirectory, 'qemu', web.metadata.id);
  // What a guest would have written; at the end of the disk, where nothing else is.
  const info = execFileSync('qemu-img', ['info', '-f', 'qcow2', '--output=json', 'disk.qcow2'], { cwd: folder });
  const at = JSON.parse(info.toString())['virtual-size'] - 65_536;
  execFileSync('qemu-io', ['-f', 'qcow2', '-c', `write -P 0x5a ${at} 64k`, 'disk.qcow2'], { cwd: folder });

  const made = await berth('image', 'create', 'snap', '--from', 'web');
  expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^image snap created from web \(.* MiB\)\n$/) });
  expect((await readdir(folder)).filter((name) => name.startsWith('export'))).toEqual([]);
  const image = await fleet.client.get('image', 'snap');
  expect(image.spec).toMatchObject({
    source: expect.stringMatching(/^berth:/),
    format: 'qcow2',
    architecture: 'amd64',
  });

  const second = await run('second', 'snap');
  expect(second.status.phase).toBe('Running');
  expect(second.status.guest?.imageDigest).toBe(image.spec.checksum); // not packed: file and content are one
  const disk = join(fleet.agentDirectory, 'qemu', second.metadata.id, 'disk.qcow2');
  const read = execFileSync('qemu-io', ['-U', '-r', '-f', 'qcow2', '-c', `read -P 0x5a ${at} 64k`, disk], {
    encoding: 'utf8',
  });
  expect(read).toContain('read 65536/65536');
  expect(read).not.toContain('Pattern verification failed');
  expect((await readFile(disk)).subarray(0, 4).toString('latin1')).toBe('QFI\xfb');
});

it('is none of what is not there', async () => {
  expect(await berth('image', 'create', 'x', '--from', 'nobody')).toMatchObject({ code: 3 });
});
