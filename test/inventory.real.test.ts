// Follows docs/inventory.md: from the mock source to a result of /schedule.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { freePort } from '../src/base/test-ports.ts';
import { type Fleet, startFleet } from './processes.ts';
import { runningCommand } from './running-command.ts';

const run = promisify(execFile);
const main = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const berth = `berth() { "${process.execPath}" "${main}" "$@"; }\n`;
let directory: string;
let fleet: Fleet;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-inventory-'));
  fleet = await startFleet(directory, { drivers: ['fake'] });
});
afterAll(async () => {
  await fleet?.stop();
  await rm(directory, { recursive: true, force: true });
});

it('every command of docs/inventory.md does what it says', async () => {
  const document = await readFile(new URL('../docs/inventory.md', import.meta.url), 'utf8');
  const port = String(await freePort());
  const blocks = [...document.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text = '']) => text.replaceAll('8099', port));
  const [mock = '', take, ask, read, push, confirm, ...others] = blocks;
  expect(others).toEqual([]);
  const sh = async (text = '', more: Record<string, string> = {}) =>
    (
      await run('bash', ['-eu', '-c', berth + text], {
        cwd: directory,
        env: { PATH: process.env['PATH'], ...fleet.environment, ...more },
      })
    ).stdout;
  const source = runningCommand(fleet.environment, mock.trim().split(' ').slice(1));
  await source.until(/nodes/);
  expect(await sh(take)).toMatch(/metal created[\s\S]*http:\/\/127\.0\.0\.1/);
  await expect.poll(() => sh('berth inventory ls'), { timeout: 20_000 }).toMatch(/50 +Fresh/);
  const { task_id: TASK } = JSON.parse(await sh(ask));
  await expect.poll(() => sh(read, { TASK })).toContain('completed');
  expect(JSON.parse(await sh(read, { TASK })).result).toMatchObject({
    name: expect.stringMatching(/^metal-/),
    ip: expect.stringMatching(/^10\.20\./),
    pool: 'metal',
  });

  await run('bash', ['-c', 'printf -- "- {name: lab-1, cpu: 4, memory: 1024}\\n" > nodes.yaml'], { cwd: directory });
  expect(await sh(push)).toContain('Fresh: 1 hosts');
  await expect(sh(confirm, { HASH: 'none' })).rejects.toThrow(/waits for no confirmation/);
  const ended = once(source.child, 'exit');
  source.child.kill('SIGINT');
  await ended;
}, 60_000);
