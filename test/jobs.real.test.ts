// docs/jobs.md on real parts: server, agent, QEMU and the tiny image, with the command lines and the file of the page; and a job whose
// server and agent are killed while it runs.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, runBerth, startFleet } from './processes.ts';
import { tinyImage } from './tiny-image.ts';

const page = await readFile(new URL('../docs/jobs.md', import.meta.url), 'utf8');
let directory: string;
let fleet: Fleet;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-jobs-'));
  fleet = await startFleet(directory);
  const { spec } = await tinyImage();
  await fleet.client.create('image', {
    metadata: { name: 'tiny' },
    spec: { ...spec, defaults: { cpus: 1, memoryMiB: 128 } },
  });
});
afterAll(async () => {
  const { items } = await fleet.client.list('job');
  for (const { metadata } of items) await fleet.client.delete('job', metadata.name);
  await fleet.removeAll();
  await fleet.stop();
  await rm(directory, { recursive: true, force: true });
});

const berth = (...words: string[]) => runBerth(words, fleet.environment);

/** As a shell takes it apart. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}

it('runs what the page shows first', async () => {
  const [, block = ''] = /```console\n([^]*?)```/.exec(page) ?? [];
  const [hello = '', fails = ''] = [...block.matchAll(/^\$ berth (job run .*)$/gm)].map(([, line = '']) => line);
  const first = await berth(...wordsOf(hello));
  expect(first).toMatchObject({ code: 0, stdout: expect.stringMatching(/^hello from \S+\n\d+\.\d+\S*\n$/) });
  const second = await berth(...wordsOf(fails));
  expect(second).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/failed with exit code 1\n$/) });
});

it('takes the file of the page, and gives its artifacts', async () => {
  const [, yaml = ''] = /```yaml\n([^]*?)```/.exec(page) ?? [];
  const path = join(directory, 'job.yaml');
  await writeFile(path, yaml);
  expect(await berth('job', 'run', '-f', path)).toMatchObject({ code: 0, stdout: '' });
  const to = join(directory, 'out');
  expect(await berth('job', 'artifacts', 'get', 'nightly', '-o', to)).toMatchObject({ code: 0 });
  expect(await readFile(join(to, 'build', 'stamp'), 'utf8')).toMatch(/\d\d:\d\d:\d\d/);
  await fleet.gone('nightly-1');
});

it('prints every line once, though server and agent are killed meanwhile', async () => {
  const script = 'i=0; while [ $i -lt 40 ]; do echo line $i; echo err $i >&2; i=$((i+1)); sleep 0.2; done; exit 7';
  const ended = berth('job', 'run', 'tiny', '-n', 'survives', '--', script);
  await lineOf('survives', 'line 5');
  await fleet.restartServer();
  await lineOf('survives', 'line 15');
  await fleet.restartAgent();
  const { code, stdout, stderr } = await ended;
  const lines = (word: string): string => Array.from({ length: 40 }, (_, i) => `${word} ${i}\n`).join('');
  expect(code).toBe(7);
  expect(stdout).toBe(lines('line'));
  expect(stderr.replaceAll(/^(?!err).*\n/gm, '')).toBe(lines('err'));
});

/** Resolves when the log of the job has this line. */
async function lineOf(name: string, line: string): Promise<void> {
  for (;;) {
    let text = '';
    try {
      for await (const bytes of fleet.client.jobLog(name, { attempt: 1, follow: true })) {
        text += Buffer.from(bytes).toString();
        if (text.includes(` ${line}\n`)) return;
      }
    } catch {
      // it is not created yet
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

it('ends a job that is cancelled, and one whose time is over', async () => {
  const script = 'trap "echo stopped; exit 0" TERM; echo begun; while :; do sleep 0.1; done';
  const cancelled = berth('job', 'run', 'tiny', '-n', 'cut', '--', script);
  await lineOf('cut', 'begun');
  expect(await berth('job', 'cancel', 'cut')).toMatchObject({ code: 0, stdout: 'cut is being cancelled\n' });
  expect(await cancelled).toMatchObject({ code: 123, stdout: 'begun\nstopped\n' });
  const late = await berth('job', 'run', 'tiny', '--timeout', '2s', '--', 'echo begun; sleep 600');
  expect(late).toMatchObject({ code: 124, stdout: 'begun\n', stderr: expect.stringContaining('timed out') });
});
