// Follows the recipe of docs/drain.md: a server, three agents with the fake driver and the command line, all as processes.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { hostTokenOf } from '../src/server/http/tokens.ts';
import { type BerthProcess, type Fleet, runBerth, startBerth, startFleet } from './processes.ts';

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');

let directory: string;
let fleet: Fleet;
const agents: BerthProcess[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-drain-'));
  fleet = await startFleet(join(directory, 'fleet'), { drivers: ['fake'] });
  const secret = Buffer.from((await readFile(join(fleet.serverDirectory, 'secret'), 'utf8')).trim(), 'base64url');
  for (const name of ['h2', 'h3']) {
    const config = join(directory, `${name}.yaml`);
    const token = hostTokenOf(secret, name, 0);
    const dataDirectory = join(directory, name);
    const machineId = name.slice(1).repeat(32); // with all of this machine, as if it had one of its own
    const settings = { serverUrl: fleet.url, token, hostName: name, dataDirectory, machineId, drivers: ['fake'] };
    await writeFile(config, JSON.stringify(settings), { mode: 0o600 });
    agents.push(await startBerth(['agent', '--config', config], /registered/));
  }
  await fleet.client.create('image', {
    metadata: { name: 'tiny' },
    spec: { source: 'file:///tiny.qcow2', backend: 'fake', defaults: { cpus: 1, memoryMiB: 64, diskGiB: 1 } },
  });
});
afterAll(async () => {
  for (const { metadata } of (await fleet.client.list('workload')).items)
    await fleet.client.delete('workload', metadata.name);
  for (const { metadata } of (await fleet.client.list('instance')).items) await fleet.gone(metadata.name);
  await fleet.stop();
  for (const agent of agents) await agent.stop();
  await rm(directory, { recursive: true, force: true });
});

it('goes as the document says, and the workload stays available', async () => {
  const document = await readFile(join(import.meta.dirname, '../docs/drain.md'), 'utf8');
  const [, recipe = ''] = document.split(/^## /m);
  const commands = [...recipe.matchAll(/```console\n([\s\S]*?)```/g)].flatMap(([, block = '']) =>
    block.split(/^\$ berth /m).slice(1),
  );
  expect(commands).toHaveLength(4);
  let hash = '';
  for (const command of commands) {
    const [words = '', ...lines] = command.trimEnd().split('\n');
    const ready = words.includes('--apply') ? watchReady() : undefined;
    const { stdout, stderr } = await runBerth(words.replace('HASH', hash).split(' '), fleet.environment);
    expect([words, stderr]).toEqual([words, words.includes('--wait') ? expect.anything() : '']);
    const pattern = lines.map((line) => line.replaceAll(/ +/g, ' ').split('...').map(escaped).join('[^]*')).join('\n');
    expect([words, stdout.replaceAll(/ +/g, ' ').trimEnd()]).toEqual([
      words,
      expect.stringMatching(new RegExp(`^${pattern}$`)),
    ]);
    hash = /--apply (\w+)/.exec(stdout)?.[1] ?? hash;
    if (ready) expect(Math.min(...(await ready.end()))).toBeGreaterThanOrEqual(3);
  }
}, 120_000);

it('moves back what it has moved away', async () => {
  const berth = async (...words: string[]): Promise<string> => {
    const { stdout, code } = await runBerth(words, fleet.environment);
    expect([words, code]).toEqual([words, 0]);
    return stdout;
  };
  const hostNow = async (): Promise<string> => (await fleet.client.get('instance', 'db')).status.host ?? '';
  await berth('run', 'tiny', '--name', 'db', '--wait');
  const home = await hostNow();
  const [, hash = ''] = /--apply (\w+)/.exec(await berth('host', 'drain', home)) ?? [];
  await berth('host', 'drain', home, '--apply', hash, '--watch');
  expect(await hostNow()).not.toBe(home);
  await berth('host', 'drain', home, '--cancel');
  expect(await berth('host', 'restore', home, '--yes', '--watch')).toContain(`${home}: Restored, 1 of 1 done`);
  expect(await hostNow()).toBe(home);
  expect(await berth('host', 'restore', home)).toContain(`Nothing returns to host ${home}`);
  await berth('rm', 'db');
});

/** How many copies are ready, after each change of an instance. */
function watchReady() {
  const over = new AbortController();
  const counts: number[] = [];
  const watched = (async () => {
    const { items, revision } = await fleet.client.list('instance');
    const ready = new Set(items.flatMap(({ metadata, status }) => (status.guest?.ready ? [metadata.name] : [])));
    counts.push(ready.size);
    for await (const change of fleet.client.watch('instance', { revision }, over.signal)) {
      if (change.type === 'bookmark') continue;
      const { name } = change.resource.metadata;
      const isReady =
        change.type === 'put' &&
        change.resource.status.guest?.ready === true &&
        change.resource.metadata.deletionRequestedAtMs === undefined;
      if (isReady) ready.add(name);
      else ready.delete(name);
      counts.push(ready.size);
    }
  })().catch(() => {}); // it was ended
  return {
    async end() {
      over.abort();
      await watched;
      return counts;
    },
  };
}
