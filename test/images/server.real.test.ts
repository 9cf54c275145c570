// A server alone, started with the files of packaging/compose and packaging/images: in every run of the tests. Its image has the same program, user,
// health check and settings as that of `npm run build:images`, but the libraries of this machine, because a Debian takes a minute to make: compose.long.test.ts.

import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeProgram } from '../../scripts/package/program-tree.ts';
import { whyNoPodman } from '../../src/agent/drivers/container/test-podman.ts';
import { PodmanRoom } from './podman-room.ts';

const project = resolve(import.meta.dirname, '../..');
const reason = whyNoPodman();

describe.skipIf(reason !== undefined)(`a server in a container${reason ? ` (${reason})` : ''}`, () => {
  const room = new PodmanRoom({ BERTH_NAME: 'fleet.example' });

  beforeAll(async () => {
    await buildImage(room.directory);
    await room.open();
  });
  afterAll(() => room.close());

  it('serves as a user that is not root, on a root that cannot be written, and keeps its data', async () => {
    const file = 'server.yaml';
    await room.compose(file, undefined, 'up', '-d');
    await expect.poll(() => room.health('berth_server_1'), { interval: 500 }).toBe('healthy');
    expect(await room.podman('exec', 'berth_server_1', 'id', '-u')).toBe('10001\n');
    await room.logIn('berth_server_1');
    expect(await room.podman('exec', 'berth_server_1', 'berth', 'whoami')).toContain('admin');
    await room.podman('exec', 'berth_server_1', ...'berth size create small --cpus 1 --memory 1GiB'.split(' '));
    await expect(room.podman('exec', 'berth_server_1', 'sh', '-c', 'echo > /usr/file')).rejects.toThrow('Read-only');

    await room.compose(file, undefined, 'down');
    await room.compose(file, undefined, 'up', '-d');
    await expect.poll(() => room.health('berth_server_1'), { interval: 500 }).toBe('healthy');
    expect(await room.podman('exec', 'berth_server_1', 'berth', 'size', 'ls')).toMatch(/^small /m);
    await room.compose(file, undefined, 'down', '--volumes');
  });
});

/** `localhost/berth:latest` in the storage of the room. */
async function buildImage(directory: string): Promise<void> {
  const context = join(directory, 'context');
  const root = join(context, 'root');
  const library = join(root, 'usr/lib/berth');
  mkdirSync(join(project, 'web/dist'), { recursive: true }); // without a dashboard that was built, none is served
  await writeProgram(library, { sourcemap: false });
  writeFileSync(join(library, 'package.json'), '{"name":"berth","version":"0.1.0","type":"module"}\n');
  cpSync(join(project, 'node_modules/better-sqlite3'), join(library, 'node_modules/better-sqlite3'), {
    recursive: true,
    filter: (path) => !/\/(deps|src)$/.test(path),
  });
  cpSync(process.execPath, join(library, 'bin/node'));
  cpSync(join(project, 'packaging/images/health-check.mjs'), join(library, 'health-check.mjs'));
  mkdirSync(join(root, 'usr/bin'), { recursive: true });
  cpSync(join(project, 'packaging/debian/berth'), join(root, 'usr/bin/berth'));
  chmodSync(join(root, 'usr/bin/berth'), 0o755);
  addSystem(root);
  mkdirSync(join(context, 'data/server'), { recursive: true });
  cpSync(join(project, 'packaging/images/Containerfile'), join(context, 'Containerfile'));
  const storage = ['--root', join(directory, 'store'), '--runroot', join(directory, 'run')];
  const words = ['build', '--quiet', '--format', 'docker', '--build-arg', 'VERSION=test'];
  execFileSync('buildah', [...storage, ...words, '--tag', 'localhost/berth:latest', context], { stdio: 'ignore' });
}

/** A shell, and the libraries that Node needs. */
function addSystem(root: string): void {
  for (const name of ['bin', 'lib', 'lib64']) {
    mkdirSync(join(root, 'usr', name), { recursive: true });
    symlinkSync(`usr/${name}`, join(root, name));
  }
  const needed = execFileSync('ldd', [process.execPath], { encoding: 'utf8' });
  for (const [path = ''] of needed.matchAll(/\/lib\S+/g)) {
    const place = join(root, path.startsWith('/usr') ? path : join('/usr', path));
    mkdirSync(dirname(place), { recursive: true });
    copyFileSync(path, place); // what a link leads to
  }
  copyFileSync('/bin/busybox', join(root, 'bin/busybox'));
  for (const applet of ['sh', 'id', 'cat']) symlinkSync('busybox', join(root, 'usr/bin', applet));
  mkdirSync(join(root, 'etc'));
  const users = 'root:x:0:0:root:/root:/bin/sh\nberth:x:10001:10001:Berth:/var/lib/berth:/bin/sh\n';
  writeFileSync(join(root, 'etc/passwd'), users);
  for (const name of ['tmp', 'proc', 'sys', 'dev', 'run']) mkdirSync(join(root, name));
}
