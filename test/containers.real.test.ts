// Containers as users run them: server, agent and command line as processes, a real podman, and two programs that answer HTTP.

import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Instance } from '../src/api/resources/instance.ts';
import { containerName, labels } from '../src/agent/drivers/container/container-config.ts';
import { type TestPodman, whyNoExecution, whyNoPodman } from '../src/agent/drivers/container/test-podman.ts';
import { type PodmanFleet, serving, startPodmanFleet } from './podman-fleet.ts';
import { type Fleet, runBerth } from './processes.ts';

const why = whyNoPodman();
/** A copy into a container enters it, too. */
const enters = whyNoExecution();

describe.skipIf(why !== undefined)(`an instance of containers${why === undefined ? '' : ` (${why})`}`, () => {
  let started: PodmanFleet;
  let fleet: Fleet;
  let podman: TestPodman;
  let directory: string;
  let berth: PodmanFleet['berth'];

  beforeAll(async () => {
    started = await startPodmanFleet([
      {
        name: 'web',
        script: `echo "hello from \${NAME:-nobody}" >/www/index.html; ${serving('/www', '"${PORT:-80}"')}`,
      },
    ]);
    ({ fleet, podman, directory, berth } = started);
    await berth('image', 'add', 'web', '--source', 'docker://localhost/web:1', '--cpus', '1', '--memory', '64MiB');
  });
  afterAll(() => started.stop());

  /** What answers at the port of the host behind which the guest's is. */
  const pageAt = async ({ status }: Instance, guestPort: number): Promise<string> => {
    const port = status.guest?.ports.find((each) => each.guestPort === guestPort);
    const response = await fetch(`http://${port?.hostAddress}:${port?.hostPort}/`);
    return response.text();
  };

  it('answers HTTP on the published ports of both, outlives its agent, and leaves nothing', async () => {
    const file = join(directory, 'shop.yaml');
    await writeFile(
      file,
      `containers:
  - name: front
    env: { NAME: front, TOKEN: very-secret }
    ports: [{ containerPort: 80 }]
  - name: back
    env: { NAME: back, PORT: "81" }
    ports: [{ containerPort: 81 }]
    memoryMiB: 32
`,
    );
    expect(await berth('run', 'web', '--name', 'shop', '--file', file, '--wait')).toMatch(/^shop is ready/);
    const shop = await fleet.client.get('instance', 'shop');
    expect(shop.status).toMatchObject({ phase: 'Running', guest: { ready: true, accelerator: 'none' } });
    expect(shop.status.guest?.imageDigest).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(await pageAt(shop, 80)).toBe('hello from front\n');
    expect(await pageAt(shop, 81)).toBe('hello from back\n');

    const before = await podman.engine.inspect(containerName(shop.metadata.id, 'front'));
    await fleet.restartAgent();
    await fleet.until('shop', ({ status }) => status.guest?.ready === true);
    expect(await podman.engine.inspect(containerName(shop.metadata.id, 'front'))).toEqual(before);
    expect(await pageAt(shop, 81)).toBe('hello from back\n');

    expect(await berth('ps', '-o', 'json')).not.toContain('very-secret');
    expect(fleet.agentSaid()).not.toContain('very-secret');
    expect(await commandLines()).not.toContain('very-secret');

    await berth('rm', 'shop');
    await fleet.gone('shop');
    expect(await podman.engine.list(labels.directory)).toEqual([]);
  });

  it.skipIf(enters !== undefined)(`takes files and gives them back${enters ? ` (${enters})` : ''}`, async () => {
    const here = join(directory, 'here');
    await mkdir(join(here, 'site', 'deep'), { recursive: true });
    const bytes = randomBytes(3_000_000); // more than what a line holds at once
    await writeFile(join(here, 'site', 'deep', 'data'), bytes);
    await symlink('deep/data', join(here, 'site', 'link'));
    await writeFile(join(here, 'letter'), 'a letter\n');
    await berth('run', 'web', '--name', 'files', '--wait');
    const inside = async (script: string): Promise<string> => berth('exec', 'files', '--', '/bin/sh', '-c', script);

    expect(await inside('ls -d /www')).toBe('/www\n');
    await berth('cp', join(here, 'letter'), 'files:/www');
    await berth('cp', join(here, 'letter'), 'files:/www/renamed');
    await berth('cp', '-r', join(here, 'site'), 'files:/www/');
    expect(await inside('cat /www/letter /www/renamed; wc -c < /www/site/link')).toBe(
      `a letter\na letter\n${bytes.length}\n`,
    );
    await berth('cp', '-r', 'files:/www/site', join(here, 'copy'));
    expect((await readFile(join(here, 'copy', 'deep', 'data'))).equals(bytes)).toBe(true);
    expect(await readlink(join(here, 'copy', 'link'))).toBe('deep/data');
    await berth('cp', 'files:www/renamed', here);
    expect(await readFile(join(here, 'renamed'), 'utf8')).toBe('a letter\n');
    expect((await readdir(here)).toSorted()).toEqual(['copy', 'letter', 'renamed', 'site']); // nothing on the way was left

    const refused = async (...words: string[]) => (await runBerth(['cp', ...words], fleet.environment)).stderr;
    expect(await refused('files:/nowhere', here)).toContain('there is no /nowhere in instance "files"');
    expect(await refused(join(here, 'letter'), 'files:/nowhere/')).toContain('there is no directory /nowhere');
    expect(await refused(join(here, 'letter'), 'files:/nowhere/at/all')).toContain('there is no directory /nowhere/at');
    expect(await refused(join(here, 'site'), 'files:/www')).toContain('add -r');
    expect(await refused('files:/www', here)).toContain('add -r');
    expect(await refused('files:/www/letter', join(here, 'no', 'such'))).toContain('cannot write into');
    expect(await refused('-c', 'other', 'files:/www/letter', here)).toContain('has no container "other"');
    await berth('rm', 'files');
    await fleet.gone('files');
  });

  it('is refused the ways in that containers have not, with those that they have', async () => {
    await berth('run', 'web', '--name', 'ways', '--wait');
    for (const way of ['console', 'vnc']) {
      const { code, stderr } = await runBerth([way, 'ways'], fleet.environment);
      expect(stderr).toContain(way === 'vnc' ? 'has no screen for its guests' : '"berth exec -it ways -- sh"');
      expect(code).toBe(5);
    }
    const { code, stderr } = await runBerth(['ssh', 'nobody@ways'], fleet.environment);
    expect(stderr).toMatch(/cannot reach port 22 of instance "ways": .* port 22 of the containers/);
    expect(stderr).toContain('"berth exec -it ways -- sh" opens a shell in a container');
    expect(code).toBe(255);
    await berth('rm', 'ways');
    await fleet.gone('ways');
  });

  it.skipIf(enters !== undefined)(
    `copies what a container made to do harm, and harms nothing${enters ? ` (${enters})` : ''}`,
    async () => {
      const here = join(directory, 'safe');
      await mkdir(here);
      // Unpacked with links followed, the second would be written to where the first leads.
      const suid = 'touch /evil/sub/su; chmod 6755 /evil/sub/su';
      const evil = `mkdir -p /evil/sub; ${suid}; ln -s ${directory} /evil/sub/up; ln -s ${join(directory, 'victim')} /evil/file`;
      await berth('run', 'web', '--name', 'evil', '--wait');
      await berth('exec', 'evil', '--', '/bin/sh', '-c', evil);
      await berth('cp', '-r', 'evil:/evil', here);
      expect(await readlink(join(here, 'evil', 'sub', 'up'))).toBe(directory);
      expect(await readlink(join(here, 'evil', 'file'))).toBe(join(directory, 'victim'));
      expect(await readdir(directory)).not.toContain('victim');
      expect((await stat(join(here, 'evil', 'sub', 'su'))).mode & 0o7000).toBe(0);
      await berth('rm', 'evil');
      await fleet.gone('evil');
    },
  );

  it('says why it failed, and what it wrote', async () => {
    const words = ['--command', '/bin/sh', '--arg', '-c', '--arg', 'echo cannot go on; exit 4'];
    await berth('run', 'web', '--name', 'short', ...words);
    const { status } = await fleet.until('short', (instance) => instance.status.phase === 'Failed');
    expect(status.guest).toMatchObject({ reason: 'ContainerExited', message: expect.stringContaining('exit code 4') });
    expect(await berth('logs', 'short')).toBe('cannot go on\n');
    await berth('rm', 'short');
    await fleet.gone('short');
  });

  it('waits for a host whose agent has the driver, and says so', async () => {
    await fleet.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tiny.qcow2' } });
    await fleet.client.create('instance', {
      metadata: { name: 'machine' },
      spec: { image: 'tiny', cpus: 1, memoryMiB: 64 },
    });
    const { status } = await fleet.until('machine', ({ status: { conditions } }) =>
      conditions.some(({ type, reason }) => type === 'Scheduled' && reason !== 'Accepted'),
    );
    expect(status.phase).toBe('Pending');
    expect(await berth('explain', 'machine')).toContain('it runs containers only');
    await fleet.client.delete('instance', 'machine');
    await fleet.gone('machine');
  });
});

async function commandLines(): Promise<string> {
  const pids = (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return lines.join('\n');
}
