// Follows docs/schedule.md: its commands, against a real server with a host.

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, startFleet } from './processes.ts';

const run = promisify(execFile);
let directory: string;
let fleet: Fleet;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-schedule-'));
  fleet = await startFleet(directory, { drivers: ['fake'], server: { scheduleWithoutToken: 'upgrades' } });
  await fleet.client.create('pool', { metadata: { name: 'edge' }, spec: {} });
  const { spec } = await fleet.client.get('host', 'h1');
  await fleet.client.replace('host', 'h1', { spec: { ...spec, pool: 'edge' } });
});
afterAll(async () => {
  await fleet?.stop();
  await rm(directory, { recursive: true, force: true });
});

it('every command of docs/schedule.md does what it says', async () => {
  const document = await readFile(new URL('../docs/schedule.md', import.meta.url), 'utf8');
  const blocks = [...document.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text = '']) => text);
  const [ask, read, giveBack, ...others] = blocks.filter((text) => text.includes('curl'));
  expect(others).toEqual([]);
  const sh = async (text = '', more: Record<string, string> = {}) =>
    (await run('bash', ['-eu', '-c', text], { env: { PATH: process.env['PATH'], ...fleet.environment, ...more } }))
      .stdout;
  const { task_id: TASK } = JSON.parse(await sh(ask));
  await expect.poll(() => sh(read, { TASK })).toContain('completed');
  const [result, same] = (await sh(read, { TASK })).split('}}').map((text) => text.trim());
  expect(result).toContain('"name":"h1"');
  expect(same).toBe(result);
  expect(JSON.parse(await sh(giveBack, { TASK }))).toEqual({ status: 'released' });
  expect(await sh(read, { TASK })).toContain('the room is released');
  const anonymous = await sh(
    ask?.replace(/-H "Authorization[^"]*" /, '').replace('/schedule', '/schedule?project=upgrades'),
  );
  expect(JSON.parse(anonymous)).toEqual({ task_id: expect.stringMatching(/^task_/) });
});

it('the example goes from the hosts of an inventory to a result, over HTTP and over RabbitMQ', async () => {
  const example = fileURLToPath(new URL('../examples/schedule/start.mjs', import.meta.url));
  const { stdout } = await run(process.execPath, [example]);
  expect(stdout.match(/"status":"completed"/g)).toHaveLength(3);
  expect(stdout.match(/"status":"released"/g)).toHaveLength(2);
  expect(stdout).toMatch(/"name":"metal-\d+","ip":"10\.20\.0\.\d+"/);
}, 120_000);
