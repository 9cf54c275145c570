// Follows docs/audit-log.md: its commands run against a server, and its tables name what the program knows.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { AuditOutcome } from '../src/api/audit/audit-log.ts';
import { system, systemClock, systemFetch } from '../src/base/system.ts';
import { runProgram } from '../src/cli/program.ts';
import { ServerConfig } from '../src/server/config.ts';
import { startTestServer } from '../src/server/testing.ts';

const reserve = { fileBytesMax: 1 << 20, keptMs: 86_400_000, reserveBytes: 4096, afterTurn: system.afterTurn };
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

async function berth(words: readonly string[], token = 'operator') {
  let stdout = '';
  let stderr = '';
  const text = (data: string | Uint8Array): string => Buffer.from(data).toString();
  const exitCode = await runProgram(
    {
      stdout: { write: (data) => (stdout += text(data)) },
      stderr: { write: (data) => (stderr += text(data)) },
      stdin: (async function* () {})(),
      environment: { NO_COLOR: '1', BERTH_URL: server.url, BERTH_TOKEN: token },
      homeDirectory: '/nonexistent',
      clock: systemClock,
      fetch: (url, init) => systemFetch(url, init),
      runProgram: () => Promise.resolve(0),
      self: ['berth'],
      version: 'test',
      interruption: () => new AbortController().signal,
    },
    words,
  );
  return { exitCode, stdout, stderr };
}

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
