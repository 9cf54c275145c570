// Follows docs/audit-log.md: its commands run against a server, and its tables name what the program knows.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { AuditOutcome } from '../src/api/audit/audit-log.ts';
import { system } from '../src/base/system.ts';
import { ServerConfig } from '../src/server/config.ts';
import { startTestServer } from '../src/server/testing.ts';
import { berthAt } from './recipe-cli.ts';

const reserve = { fileBytesMax: 1 << 20, keptMs: 86_400_000, reserveBytes: 4096, afterCallbacks: system.afterTurn };
let directory: string;
let document: string;
let server: Awaited<ReturnType<typeof startTestServer>>;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-audit-'));
  document = await readFile(join(import.meta.dirname, '../docs/audit-log.md'), 'utf8');
  server = await startTestServer({ audit: { directory, ...reserve } });
});
afterAll(async () => {
  await server.close();
  await rm(directory, { recursive: true });
});

const berth = (words: readonly string[], token = 'operator') => berthAt({ url: server.url, token }, words);

it('shows and checks the log as docs/audit-log.md says', async () => {
  const minted = await berth(['token', 'create', '--name', 'ci', '--role', 'user', '--for-project', 'default']);
  expect(minted.stderr).not.toContain('error');
  const token = minted.stdout.trim().split(/\s+/).at(-1) ?? '';
  await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tiny.img' } });
  const run = ['run', 'tiny', '--name', 'web-1', '--cpus', '1', '--memory', '64MiB'];
  expect(await berth(run, token)).toMatchObject({ exitCode: 0 });

  const commands = [...document.matchAll(/^\$ berth (.*)$/gm)].map(([, words = '']) => words);
  expect(commands.length).toBeGreaterThan(2);
  for (const words of commands) {
    const { exitCode, stdout, stderr } = await berth(words.split(' '));
    expect([words, exitCode, stderr]).toEqual([words, 0, '']);
    if (words.includes('--who')) expect(stdout).toMatch(/token\/ci +.*create.*web-1/);
    if (words.includes('-o json')) expect(stdout).toContain('"object": "web-1"');
    if (words.includes('--who') || words.includes('--object')) expect(stdout).not.toContain('tiny');
    expect(stdout).not.toContain(token);
  }
});

it('names the outcomes and the settings that there are', () => {
  const rows = [...document.slice(0, document.indexOf('## When')).matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
  expect(rows.sort()).toEqual([...AuditOutcome.enum].sort());
  const settings = [...document.slice(document.indexOf('## Settings')).matchAll(/`(audit\w*)`/g)].map(
    ([, name]) => name,
  );
  expect(settings.sort()).toEqual(
    Object.keys(ServerConfig.properties)
      .filter((name) => name.startsWith('audit'))
      .sort(),
  );
});
