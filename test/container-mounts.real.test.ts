// What containers get of their host, and how they end: server, agent and command line as processes, and a real podman.

import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { containerName } from '../src/agent/drivers/container/container-config.ts';
import { type TestPodman, whyNoPodman } from '../src/agent/drivers/container/test-podman.ts';
import { type PodmanFleet, serving, startPodmanFleet } from './podman-fleet.ts';
import { type Fleet, runBerth } from './processes.ts';

const why = whyNoPodman();

describe.skipIf(why !== undefined)(`containers and their host${why === undefined ? '' : ` (${why})`}`, () => {
  let started: PodmanFleet;
  let fleet: Fleet;
  let podman: TestPodman;
  let directory: string;
  let berth: PodmanFleet['berth'];

  beforeAll(async () => {
    started = await startPodmanFleet([
      { name: 'web', script: `echo written >/data/new 2>/data/failed; ${serving('/site')}` },
      { name: 'deaf', script: "trap '' TERM; while true; do sleep 1000 & wait $!; done" },
    ]);
    ({ fleet, podman, directory, berth } = started);
    await mkdir(join(directory, 'srv', 'site'), { recursive: true });
    await mkdir(join(directory, 'srv', 'data'));
    await writeFile(join(directory, 'srv', 'site', 'index.html'), 'hello from the host\n');
    await symlink('/etc', join(directory, 'srv', 'out'));
    await berth('pool', 'create', 'own', '--host-path', join(directory, 'srv'));
    await berth('host', 'pool', 'h1', 'own');
    for (const name of ['web', 'deaf'])
      await berth('image', 'add', name, '--source', `docker://localhost/${name}:1`, '--memory', '64MiB');
  });
  afterAll(() => started.stop());

  const run = (...argv: string[]) => berth('run', ...argv, '--pool', 'own', '--cpus', '0.25');
  const srv = (path: string): string => join(directory, 'srv', path);

  it('see a folder that their pool allows, read it, and write where they may', async () => {
    const flags = ['--mount', `${srv('site')}:/site:ro`, '--mount', `${srv('data')}:/data`, '--publish', '80'];
    await run('web', '--name', 'web', ...flags, '--health-http', '80', '--health-period', '1s', '--wait');
    const { status } = await fleet.client.get('instance', 'web');
    const [port] = status.guest?.ports ?? [];
    const page = await fetch(`http://${port?.hostAddress}:${port?.hostPort}/`);
    expect(await page.text()).toBe('hello from the host\n');
    expect(await readFile(srv('data/new'), 'utf8')).toBe('written\n');
    expect(status.assigned?.['VCPU']).toBe(0.25);
    expect(await berth('show', 'web')).toMatch(/cpus\s+0\.25/);
  });

  it('do not get what a link leads to, nor what another guest can replace', async () => {
    await run('web', '--name', 'out', '--mount', `${srv('out')}:/site`);
    const out = await fleet.until('out', ({ status: { phase } }) => phase === 'Failed');
    expect(out.status.guest).toMatchObject({
      reason: 'NotPossible',
      message: expect.stringContaining('symbolic link'),
    });
    await mkdir(srv('data/deep'), { recursive: true });
    await run('web', '--name', 'deep', '--mount', `${srv('data/deep')}:/site`);
    const deep = await fleet.until('deep', ({ status: { phase } }) => phase === 'Failed');
    expect(deep.status.guest?.message).toContain('another guest can write to');
    const { stderr, code } = await runBerth(
      ['run', 'web', '--pool', 'own', '--mount', '/etc:/site'],
      fleet.environment,
    );
    expect([code === 0, stderr]).toEqual([false, expect.stringContaining('pool "own" does not allow /etc')]);
  });

  it('are killed after their own grace, the others after that of the instance', async () => {
    await writeFile(
      join(directory, 'deaf.yaml'),
      'stopGraceMs: 600000\ncontainers:\n  - { name: one, cpus: 0.1, stopGraceMs: 200 }\n  - { name: two, cpus: 0.1, stopGraceMs: 400 }\n',
    );
    await berth('run', 'deaf', '--name', 'deaf', '--pool', 'own', '-f', join(directory, 'deaf.yaml'), '--wait');
    const { metadata } = await fleet.client.get('instance', 'deaf');
    // Their own graces are all that ends them within the time of this test.
    await berth('stop', 'deaf', '--timeout', '60s');
    expect((await podman.engine.inspect(containerName(metadata.id, 'one')))?.State.ExitCode).toBe(137);
    expect((await podman.engine.inspect(containerName(metadata.id, 'two')))?.State.ExitCode).toBe(137);
  });
});
