// A volume with a file system in containers, as docs/volumes.md describes it: server, agent and command line as processes, and a real podman.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { whyNoPodman } from '../src/agent/drivers/container/test-podman.ts';
import { system } from '../src/base/system.ts';
import { type PodmanFleet, serving, startPodmanFleet } from './podman-fleet.ts';
import { runBerth } from './processes.ts';

const why = system.userId() === 0 ? whyNoPodman() : 'the agent mounts volumes as root only';

describe.skipIf(why !== undefined)(`volumes of containers${why === undefined ? '' : ` (${why})`}`, () => {
  let started: PodmanFleet;

  beforeAll(async () => {
    // Each start writes one more line, and says how many there are.
    const script = `echo line >>/data/lines; wc -l </data/lines; df -m /data | tail -n1; ${serving('/data')}`;
    started = await startPodmanFleet([{ name: 'web', script }]);
    const { berth } = started;
    await berth('image', 'add', 'web', '--source', 'docker://localhost/web:1', '--memory', '64MiB');
    await berth('image', 'add', 'vm', '--source', 'https://images.example/vm.qcow2');
    await berth('volume', 'create', 'data', '--size', '1GiB', '--format', 'filesystem');
    await berth('volume', 'create', 'block', '--size', '1GiB');
  });
  afterAll(() => started.stop());

  const run = (name: string, mount: string) =>
    started.berth('run', 'web', '--name', name, '--mount', mount, '--cpus', '0.25', '--publish', '80', '--wait');
  const lines = async (name: string): Promise<string> => {
    const { status } = await started.fleet.client.get('instance', name);
    const [port] = status.guest?.ports ?? [];
    return (await fetch(`http://${port?.hostAddress}:${port?.hostPort}/lines`)).text();
  };
  const refused = async (...argv: string[]): Promise<string> => {
    const { stderr, code } = await runBerth(argv, started.fleet.environment);
    expect(code).not.toBe(0);
    return stderr;
  };

  it('are refused where they do not fit', async () => {
    expect(await refused('run', 'web', '--mount', 'block:/data')).toContain('is a disk for virtual machines');
    expect(await refused('run', 'vm', '--cpus', '1', '--memory', '64MiB', '--volume', 'data')).toContain(
      'is a file system for containers',
    );
    expect(await refused('run', 'web', '--volume', 'data')).toContain('no container mounts volume "data"');
    expect(await refused('run', 'web', '--mount', 'none:/data')).toContain('there is no volume "none"');
  });

  it('keep what was written through a stop and a replacement, for one instance at a time', async () => {
    const { berth, fleet } = started;
    await run('one', 'data:/data');
    expect(await lines('one')).toBe('line\n');
    expect(await refused('run', 'web', '--mount', 'data:/data')).toContain('is attached to instance "one"');
    expect(await refused('volume', 'detach', 'data')).toContain('keep the volumes that they were created with');
    await berth('stop', 'one');
    await berth('volume', 'snapshot', 'create', 'data', 'first', '--wait');
    await berth('volume', 'resize', 'data', '2GiB', '--wait');
    await berth('start', 'one', '--wait');
    expect(await lines('one')).toBe('line\nline\n');
    const [, size = ''] = /(\d+) +\d+ +\d+ +\d+% \/data/.exec(await berth('logs', 'one')) ?? [];
    expect(Number(size)).toBeGreaterThan(900);
    await berth('rm', 'one', '--wait');
    await run('two', 'data:/data');
    expect(await lines('two')).toBe('line\nline\nline\n');
    await berth('rm', 'two', '--wait');

    const copy = ['--size', '2GiB', '--format', 'filesystem', '--from', 'data@first', '--wait'];
    await berth('volume', 'create', 'copy', ...copy);
    await run('three', 'copy:/data');
    expect(await lines('three')).toBe('line\nline\n');
    await berth('rm', 'three', '--wait');
    for (const name of ['copy', 'data']) await berth('volume', 'rm', name, '--wait');
    const volumes = join(started.directory, 'fleet', 'agent', 'volumes');
    expect(await readdir(volumes).catch(() => [])).toEqual([]);
    expect((await fleet.client.list('volume')).items.map(({ metadata }) => metadata.name)).toEqual(['block']);
  });
});
