// A job runs a file of a commit in a real guest: the agent fetches the commit from a server of plain files on this host.

import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { dumb, git, type GitServer, makeFolder, serve } from '../src/agent/runner/repository/test-git-server.ts';
import { type Fleet, startFleet } from './processes.ts';
import { tinyImage } from './tiny-image.ts';

const root = makeFolder();
let fleet: Fleet;
let server: GitServer;
let commit = '';

beforeAll(async () => {
  const source = join(root, 'public', 'tool');
  mkdirSync(join(source, '.solstice'), { recursive: true });
  git(source, 'init', '-q');
  writeFileSync(join(source, '.gitattributes'), 'hidden export-ignore\n*.txt text eol=crlf\n');
  writeFileSync(join(source, 'hidden'), 'hidden\n');
  writeFileSync(join(source, 'a.txt'), 'one\n');
  symlinkSync('a.txt', join(source, 'link'));
  writeFileSync(
    join(source, '.solstice', 'job.sh'),
    'echo "commit $SOLSTICE_COMMIT_SHA file $BERTH_JOB_FILE"\ncat hidden link | od -c | head -n 1\nls -d .git 2>&1\nexit 7\n',
  );
  git(source, 'add', '-A');
  git(source, 'commit', '-qm', 'one');
  commit = git(source, 'rev-parse', 'HEAD');
  git(source, 'update-server-info');
  server = await serve(dumb(join(root, 'public')));
  fleet = await startFleet(join(root, 'fleet'), { agent: { repositoryNetworks: ['private'] } });
  await fleet.client.create('image', { metadata: { name: 'tiny' }, spec: (await tinyImage()).spec });
});

afterAll(async () => {
  await fleet?.stop();
  await server?.close();
  rmSync(root, { recursive: true, force: true });
});

it('has the exact files of the commit, and the exit code of its program', async () => {
  const { log, status } = await runJob('exact', { url: `${server.url}/tool/.git`, commit });
  expect(log).toEqual([
    `commit ${commit} file .solstice/job.sh`,
    '0000000   h   i   d   d   e   n  \\n   o   n   e  \\n',
    'ls: .git: No such file or directory',
  ]);
  expect(status).toMatchObject({ phase: 'Failed', exitCode: 7, attempt: 1 });
});

it('says which commit is not there', async () => {
  const missing = '0123456789012345678901234567890123456789';
  const { log, status } = await runJob('missing', { url: `${server.url}/tool/.git`, commit: missing });
  expect(log).toEqual([]);
  expect(status).toMatchObject({ phase: 'Failed' });
  expect(JSON.stringify(status)).toContain(`commit ${missing}`);
});

async function runJob(name: string, repo: { readonly url: string; readonly commit: string }) {
  const spec = { image: 'tiny', cpus: 1, memoryMiB: 128, repo, retries: { max: 0, on: [] } };
  await fleet.client.create('job', { metadata: { name }, spec });
  for (;;) {
    const { items, revision } = await fleet.client.list('job');
    const status = items.find(({ metadata }) => metadata.name === name)?.status;
    if (status?.phase === 'Failed' || status?.phase === 'Succeeded') return { status, log: await logOf(name) };
    for await (const change of fleet.client.watch('job', { revision }, AbortSignal.timeout(100_000)))
      if (change.type === 'put') break;
  }
}

async function logOf(name: string): Promise<string[]> {
  const pieces: Uint8Array[] = [];
  try {
    for await (const bytes of fleet.client.jobLog(name)) pieces.push(bytes);
  } catch (error) {
    if (!String(error).includes('log')) throw error; // it has none
  }
  const lines = Buffer.concat(pieces).toString('latin1').split('\n').slice(0, -1);
  return lines.map((line) => line.replace(/^\S+ \S+ F /, ''));
}
