// docs/jobs.md as its reader would try it: what it shows is taken by the commands and allowed by the schemas.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { parse } from '../src/api/parse.ts';
import { JobSpec } from '../src/api/resources/job.ts';
import { ServerConfig } from '../src/server/config.ts';
import { exitCodes } from '../src/cli/exit-codes.ts';
import { refusal, type Request, runBerth } from '../src/cli/testing.ts';

const page = await readFile(new URL('../docs/jobs.md', import.meta.url), 'utf8');
const directory = await mkdtemp(join(tmpdir(), 'docs-jobs-'));
afterAll(() => rm(directory, { recursive: true }));

/** What the command asks the server for. */
async function asked(words: readonly string[]): Promise<Request> {
  const { requests, stderr } = await runBerth(words, { handler: () => refusal(404, 'NotFound', 'nothing is here') });
  return requests[0] ?? expect.fail(`it asks for nothing: ${stderr}`);
}

it('has a file that is a job', async () => {
  const [, yaml = ''] = /```yaml\n([^]*?)```/.exec(page) ?? [];
  const path = join(directory, 'job.yaml');
  await writeFile(path, yaml);
  const request = await asked(['job', 'run', '-f', path]);
  expect(request).toMatchObject({ method: 'POST', path: '/v1/jobs', body: { metadata: { name: 'nightly' } } });
  const { spec } = request.body as { spec: object };
  expect(parse(JobSpec, spec)).toMatchObject({
    script: expect.stringContaining('build/stamp'),
    artifacts: ['build/*'],
  });
});

it('has command lines that the command takes', async () => {
  const lines = [...page.matchAll(/^\$ berth (job run .*)$/gm)].map(([, line = '']) => line);
  expect(lines.length).toBeGreaterThan(3);
  for (const line of lines.filter((each) => !each.includes(' -f ') && !each.includes('--ssh-key'))) {
    const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
    const { spec } = (await asked(words)).body as { spec: object };
    expect(parse(JobSpec, spec)).toHaveProperty('script', words.at(-1));
  }
});

it('names the verbs that there are', async () => {
  const verbs = new Set([...page.matchAll(/`berth job ([a-z]+)( [a-z]+)?/g)].map(([, verb = '']) => verb));
  const { stdout } = await runBerth(['job', '--help']);
  for (const verb of verbs) expect(stdout).toMatch(new RegExp(`^ {2}${verb}\\b`, 'm'));
  expect([...verbs].sort()).toEqual(['artifacts', 'cancel', 'logs', 'ls', 'retry', 'rm', 'run', 'show']);
});

it('names the keys of the configuration, and the exit codes', () => {
  const [, table = ''] = /\| key of the server's configuration [^]*?\n((?:\|.*\n)+)/.exec(page) ?? [];
  const keys = [...table.matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, cell = '']) => [...cell.matchAll(/`(\w+)`/g)]);
  expect(keys.map(([, key]) => key)).toHaveLength(6);
  for (const [, key = ''] of keys) expect(ServerConfig.properties).toHaveProperty(key);
  const { jobCancelled, jobTimedOut, jobInfrastructure } = exitCodes;
  for (const code of [jobCancelled, jobTimedOut, jobInfrastructure]) expect(page).toContain(`| ${code} |`);
});
