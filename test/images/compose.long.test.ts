// The image that `npm run build:images` makes, and the files of packaging/compose: built with buildah and started with podman, in networks and
// processes of their own. PostgreSQL, RabbitMQ and etcd are those of this machine, because their images come from a registry.

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { whyNoPodman } from '../../src/agent/drivers/container/test-podman.ts';
import { PodmanRoom } from './podman-room.ts';

const project = resolve(import.meta.dirname, '../..');
const reason = whyNoPodman();

const passwords = {
  POSTGRES_PASSWORD: 'of1postgres',
  RABBITMQ_PASSWORD: 'of1rabbitmq',
  BERTH_MASTER_KEY: randomBytes(32).toString('base64'),
};

describe.skipIf(reason !== undefined)(`the image${reason ? ` (${reason})` : ''}`, () => {
  const room = new PodmanRoom({ BERTH_NAME: 'fleet.example', ...passwords });
  const { directory } = room;

  beforeAll(async () => {
    const words = ['scripts/build-images.ts', '--storage', directory];
    execFileSync(process.execPath, words, { cwd: project, stdio: ['ignore', 'ignore', 'inherit'] });
    buildStandIns(directory);
    await room.open();
  });
  afterAll(() => room.close());

  const podman = (...words: readonly string[]) => room.podman(...words);
  const compose = (file: string, ...words: readonly string[]) =>
    room.compose(file, join(directory, 'override', file), ...words);
  const isReady = (container: string) => () => room.health(container);
  const logIn = (container: string) => room.logIn(container);
  let file: string;
  afterEach(() => compose(file, 'down', '--volumes'));

  it('serves with SQLite, as a user that is not root, on a root that cannot be written', async () => {
    file = 'server.yaml';
    await compose(file, 'up', '-d');
    await expect.poll(isReady('berth_server_1'), { interval: 500 }).toBe('healthy');
    expect(await podman('exec', 'berth_server_1', 'id', '-u')).toBe('10001\n');
    await logIn('berth_server_1');
    expect(await podman('exec', 'berth_server_1', 'berth', 'whoami')).toContain('admin');
    await expect(podman('exec', 'berth_server_1', 'sh', '-c', 'echo > /usr/file')).rejects.toThrow('Read-only');
  });

  it('serves with PostgreSQL, and takes jobs from RabbitMQ', async () => {
    file = 'postgres-rabbitmq.yaml';
    await compose(file, 'up', '-d');
    await expect.poll(isReady('berth_server_1'), { interval: 500 }).toBe('healthy');
    await logIn('berth_server_1');
    await podman('exec', 'berth_server_1', ...'berth size create small --cpus 1 --memory 1GiB'.split(' '));
    const ask = `
      const authorization = 'Bearer ' + fs.readFileSync('/var/lib/berth/server/operator.token', 'utf8').trim();
      fetch('https://127.0.0.1:7070/readyz?verbose', { headers: { authorization } }).then((answer) => answer.text()).then(console.log)`;
    const words = ['exec', '--env', 'NODE_TLS_REJECT_UNAUTHORIZED=0', 'berth_server_1', '/usr/lib/berth/bin/node'];
    await expect
      .poll(() => podman(...words, '-e', ask), { interval: 500 })
      .toMatch(/"amqp intake","ok":true,"message":"consumes from/);
  });

  it('serves three times with etcd: what one server was told, each of them knows', async () => {
    file = 'etcd.yaml';
    await compose(file, 'up', '-d');
    for (const i of [1, 2, 3]) await expect.poll(isReady(`berth_server-${i}_1`), { interval: 500 }).toBe('healthy');
    // The token is where the fleet was made.
    const token = '/var/lib/berth/server/operator.token';
    const has = async (i: number) =>
      (await podman('exec', `berth_server-${i}_1`, 'ls', '/var/lib/berth/server')).includes('operator.token');
    const [i = 0] = (await Promise.all([1, 2, 3].map(async (each) => ((await has(each)) ? [each] : [])))).flat();
    for (const other of [1, 2, 3]) {
      const words = `context set s${other} --url https://server-${other}:7070 --ca /var/lib/berth/server/ca.pem --token-file ${token}`;
      await podman('exec', `berth_server-${i}_1`, 'berth', ...words.split(' '));
    }
    const asked = (other: number, words: string) =>
      podman('exec', `berth_server-${i}_1`, 'berth', '--context', `s${other}`, ...words.split(' '));
    await asked(1, 'size create small --cpus 1 --memory 1GiB');
    for (const other of [2, 3]) await expect.poll(() => asked(other, 'size ls')).toMatch(/^small /m);
  });
});

/** Images with the names that the files have, in which this machine's /usr is mounted. */
function buildStandIns(directory: string): void {
  const context = join(directory, 'stand-in');
  mkdirSync(join(context, 'root/etc'), { recursive: true });
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) symlinkSync(`usr/${name}`, join(context, 'root', name));
  for (const name of ['usr', 'tmp']) mkdirSync(join(context, 'root', name));
  for (const name of ['passwd', 'group', 'nsswitch.conf']) cpSync(`/etc/${name}`, join(context, 'root/etc', name));
  cpSync(join(import.meta.dirname, 'stand-in.sh'), join(context, 'root/stand-in'));
  const images = {
    postgres: 'docker.io/library/postgres:17',
    rabbitmq: 'docker.io/library/rabbitmq:4',
    '': 'quay.io/coreos/etcd:v3.5.21',
  };
  for (const [name, image] of Object.entries(images)) {
    const command = name === '' ? '' : `CMD ["${name}"]\n`;
    writeFileSync(
      join(context, 'Containerfile'),
      `FROM scratch\nCOPY root /\nENTRYPOINT ["/bin/sh", "/stand-in"]\n${command}`,
    );
    const words = ['--root', join(directory, 'store'), '--runroot', join(directory, 'run'), 'build', '--quiet'];
    execFileSync('buildah', [...words, '--format', 'docker', '--tag', image, context], { stdio: 'ignore' });
  }
  mkdirSync(join(directory, 'override'));
  const mounted = (names: readonly string[]) =>
    `services:\n${names.map((name) => `  ${name}:\n    volumes:\n      - /usr:/usr:ro\n`).join('')}`;
  writeFileSync(join(directory, 'override/server.yaml'), 'services: {}\n');
  writeFileSync(join(directory, 'override/postgres-rabbitmq.yaml'), mounted(['postgres', 'rabbitmq']));
  writeFileSync(join(directory, 'override/etcd.yaml'), mounted(['etcd']));
}
