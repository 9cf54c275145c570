// Follows the recipe of docs/workloads.md: server, agent and command line as processes, with a real podman.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { whyNoPodman } from '../src/agent/drivers/container/test-podman.ts';
import { type PodmanFleet, serving, startPodmanFleet } from './podman-fleet.ts';
import { type Fleet, runBerth } from './processes.ts';

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
const why = whyNoPodman();

describe.skipIf(why !== undefined)(`the recipe of workloads${why === undefined ? '' : ` (${why})`}`, () => {
  let started: PodmanFleet;
  let fleet: Fleet;
  let berth: PodmanFleet['berth'];

  beforeAll(async () => {
    started = await startPodmanFleet([
      { name: 'door', script: `mkdir -p /www; ${serving('/www')}` },
      { name: 'shut', script: 'trap "exit 0" TERM; while true; do sleep 1 & wait; done' },
    ]);
    ({ fleet, berth } = started);
    for (const name of ['door', 'shut'])
      await berth('image', 'add', name, '--source', `docker://localhost/${name}:1`, '--cpus', '1', '--memory', '64MiB');
  });
  afterAll(() => started.stop());

  it('goes as the document says', async () => {
    const document = await readFile(join(import.meta.dirname, '../docs/workloads.md'), 'utf8');
    const commands = [...document.matchAll(/```console\n([\s\S]*?)```/g)].flatMap(([, block = '']) =>
      block.split(/^\$ berth /m).slice(1),
    );
    expect(commands.length).toBeGreaterThan(7);
    let hash = '';
    for (const command of commands) {
      const [written = '', ...lines] = command.trimEnd().split('\n');
      const words = written.replace('HASH', hash);
      const { stdout, stderr } = await runBerth(words.split(' '), fleet.environment);
      // Progress goes to standard error, before a failure.
      hash = /^Plan ([0-9a-f]{32})\. Apply/m.exec(stdout)?.[1] ?? hash;
      const said = (stdout === '' ? (stderr.split(/^(?=berth: )/m).at(-1) ?? '') : stdout).trimEnd();
      const pattern = lines.map((line) => line.split('...').map(escaped).join('.*')).join('\n');
      expect([words, said]).toEqual([words, expect.stringMatching(new RegExp(`^${pattern}$`))]);
    }
  }, 180_000);
});
