// Jobs in real guests when something breaks: the guest, the server and the agent at the worst moments; programs that flood, never end,
// fill their disk or leave daemons behind; and instances that are held for a look inside.
// Only the first test stops the server and the agent: the others, each with jobs of its own, run at the same time.

import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Job, JobSpec } from '../src/api/resources/job.ts';
import { type Fleet, runBerth, startFleet } from './processes.ts';
import { runningCommand } from './running-command.ts';
import { tinyImage } from './tiny-image.ts';

let directory: string;
let fleet: Fleet;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-job-faults-'));
  fleet = await startFleet(directory);
  const { spec } = await tinyImage();
  const defaults = { cpus: 1, memoryMiB: 128 };
  await fleet.client.create('image', { metadata: { name: 'tiny' }, spec: { ...spec, defaults } });
});
afterAll(async () => {
  const { items } = await fleet.client.list('job');
  for (const { metadata } of items) await fleet.client.delete('job', metadata.name);
  await fleet.removeAll();
  await fleet.stop();
  await rm(directory, { recursive: true, force: true });
});

const berth = (...words: string[]) => runBerth(words, fleet.environment);

const begin = (name: string, script: string, spec: Partial<JobSpec> = {}) =>
  fleet.client.create('job', { metadata: { name }, spec: { label: 'tiny', script, ...spec } });

/** The job once `holds` is true of it; servers may come and go meanwhile. */
async function until(name: string, holds: (status: Job['status']) => boolean): Promise<Job> {
  for (;;) {
    try {
      const { items, revision } = await fleet.client.list('job');
      const job = items.find(({ metadata }) => metadata.name === name);
      if (job !== undefined && holds(job.status)) return job;
      const ending = AbortSignal.timeout(10_000);
      for await (const change of fleet.client.watch('job', { revision }, ending)) if (change.type === 'put') break;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

const ended = (name: string): Promise<Job> => until(name, ({ endedAtMs }) => endedAtMs !== undefined);
const running = (name: string, attempt = 1): Promise<Job> =>
  until(name, (status) => status.attempt === attempt && status.phase === 'Running');

/** Kills the hypervisor of the job's current attempt. */
async function killGuest({ status }: Job): Promise<void> {
  const instanceId = status.attempts.at(-1)?.instanceId ?? expect.unreachable();
  for (const pid of await readdir('/proc')) {
    const line = /^\d+$/.test(pid) ? await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '') : '';
    if (line.startsWith('qemu') || line.includes('/qemu-'))
      if (line.includes(instanceId)) process.kill(Number(pid), 'SIGKILL');
  }
}

/** Resolves when the log of the first attempt has this line. */
async function lineOf(name: string, line: string): Promise<void> {
  let text = '';
  for await (const bytes of fleet.client.jobLog(name, { attempt: 1, follow: true })) {
    text += Buffer.from(bytes).toString();
    if (text.includes(` ${line}\n`)) return;
  }
  throw new Error(`the log ended without "${line}": ${text}`);
}

const digest = (bytes: string | Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const numbered = (word: string, count: number): string => {
  let text = '';
  for (let i = 1; i <= count; i += 1) text += `${word} ${i}\n`;
  return text;
};

it('has the result, the last line and the artifacts of a program that ends while server and agent are away', async () => {
  const script = 'echo begun; sleep 5; head -c 3000000 /dev/urandom >big.bin; md5sum big.bin; printf end; exit 9';
  await begin('away', script, { artifacts: ['*.bin'] });
  await running('away');
  await fleet.killServer();
  await untilAgentSaid('the program of a guest has ended');
  await fleet.killAgent();
  await fleet.restartServer();
  await fleet.restartAgent();
  const { status } = await ended('away');
  expect(status).toMatchObject({ phase: 'Failed', exitCode: 9, attempt: 1 });
  const [first = '', sum = '', last] = (await berth('job', 'logs', 'away')).stdout.split('\n');
  expect([first, last]).toEqual(['begun', 'end']);
  const to = join(directory, 'away');
  expect(await berth('job', 'artifacts', 'get', 'away', '-o', to)).toMatchObject({ code: 0 });
  const kept = await readFile(join(to, 'big.bin'));
  expect(`${createHash('md5').update(kept).digest('hex')}  big.bin`).toBe(sum);
  await fleet.gone('away-1');
});

async function untilAgentSaid(words: string): Promise<void> {
  while (!fleet.agentSaid().includes(words)) await new Promise((resolve) => setTimeout(resolve, 50));
}

it.concurrent('makes another guest for an attempt whose guest is killed, as often as it may', async () => {
  await begin('mended', 'echo on $(hostname); case $(hostname) in *-1) sleep 600 ;; esac; echo done');
  await begin('broken', 'sleep 600', { retries: { max: 1, on: ['infrastructure'] } });
  await lineOf('mended', 'on mended-1');
  await killGuest(await running('mended'));
  await killGuest(await running('broken'));
  await killGuest(await running('broken', 2));
  const { status } = await ended('mended');
  expect(status).toMatchObject({ phase: 'Succeeded', exitCode: 0, attempt: 2 });
  expect(status.attempts).toMatchObject([
    { outcome: 'infrastructure', reason: 'GuestEnded' },
    { outcome: 'succeeded' },
  ]);
  expect(await berth('job', 'logs', 'mended')).toMatchObject({ stdout: 'on mended-2\ndone\n' });
  expect(await berth('job', 'logs', 'mended', '--attempt', '1')).toMatchObject({ stdout: 'on mended-1\n' });
  const broken = await ended('broken');
  expect(broken.status).toMatchObject({ phase: 'Failed', reason: 'GuestEnded', attempt: 2 });
  expect(broken.status.exitCode).toBeUndefined();
});

it.concurrent('keeps each of 100,000 lines of a program that then closes its output', async () => {
  const script =
    'awk \'BEGIN { for (i = 1; i <= 100000; i++) { print "line " i; if (i % 10 == 0) print "err " i / 10 >"/dev/stderr" } }\'; exec >&- 2>&-; sleep 1; exit 6';
  await begin('flood', script);
  expect((await ended('flood')).status).toMatchObject({ phase: 'Failed', exitCode: 6 });
  const log = await logOf('flood');
  expect(digest(log.stdout)).toBe(digest(numbered('line', 100_000)));
  expect(digest(log.stderr)).toBe(digest(numbered('err', 10_000)));
});

async function logOf(name: string): Promise<Record<'stdout' | 'stderr', string>> {
  const pieces: Uint8Array[] = [];
  for await (const piece of fleet.client.jobLog(name)) pieces.push(piece);
  const texts = { stdout: '', stderr: '' };
  for (const line of Buffer.concat(pieces).toString().split('\n')) {
    const [, stream, tag, text = ''] = /^\S+ (stdout|stderr) ([FP]) (.*)$/.exec(line) ?? [];
    if (stream === 'stdout' || stream === 'stderr') texts[stream] += tag === 'F' ? `${text}\n` : text;
  }
  return texts;
}

it.concurrent('ends by the end of the program, whatever daemons hold its output and however full its disk is', async () => {
  const script = [
    'setsid sh -c "while :; do sleep 1; done" &',
    'dd if=/dev/zero of=fill bs=1M 2>/dev/null; echo more >fill2 || echo full; ls fill',
    'rm fill; echo kept >kept.txt; dd if=/dev/zero of=fill bs=1M 2>/dev/null',
    'printf unfinished; exit 4',
  ].join('\n');
  await begin('daemon', script, { artifacts: ['*.txt', 'none/*'] });
  const { status } = await ended('daemon');
  expect(status).toMatchObject({ phase: 'Failed', exitCode: 4 });
  expect((await berth('job', 'logs', 'daemon')).stdout).toBe('full\nfill\nunfinished');
  const to = join(directory, 'daemon');
  expect(await berth('job', 'artifacts', 'get', 'daemon', '-o', to)).toMatchObject({ code: 0 });
  expect(await readFile(join(to, 'kept.txt'), 'utf8')).toBe('kept\n');
});

it.concurrent('ends programs that ignore SIGTERM, when they are cancelled and when their time is over', async () => {
  const script = 'trap "" TERM; echo begun; while :; do sleep 1; done';
  await begin('stubborn', script);
  await begin('endless', script, { timeoutMs: 3000, retries: { max: 2, on: ['infrastructure', 'failure'] } });
  await lineOf('stubborn', 'begun');
  await lineOf('endless', 'begun');
  expect(await berth('job', 'cancel', 'stubborn')).toMatchObject({ code: 0 });
  expect((await ended('stubborn')).status).toMatchObject({ phase: 'Cancelled', attempt: 1 });
  expect((await ended('endless')).status).toMatchObject({ phase: 'TimedOut', attempt: 1 });
  await fleet.gone('stubborn-1');
  await fleet.gone('endless-1');
});

it.concurrent('cancels what has no place yet, and nothing of it was run', async () => {
  const waits = berth('job', 'run', 'tiny', '-n', 'waits', '--cpus', '900', '--', 'echo never');
  await until('waits', ({ phase }) => phase === 'Queued');
  expect(await berth('job', 'cancel', 'waits')).toMatchObject({ code: 0 });
  expect(await waits).toMatchObject({ code: 123, stdout: '' });
  expect((await ended('waits')).status.startedAtMs).toBeUndefined();
  await fleet.gone('waits-1');
});

it.concurrent('holds the instance of a failed program for a look inside, and removes it then', async () => {
  const ran = await berth('job', 'run', 'tiny', '-n', 'held', '--hold', '25s', '--', 'echo secret >found; exit 2');
  expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining('berth console held-1') });
  const { stdout } = await berth('job', 'ls');
  const [header = '', row = ''] = stdout.split('\n').filter((line) => /^(NAME|held) /.test(line));
  expect(row.slice(header.indexOf('EXIT'))).toMatch(/^ *2 +\d+s /);
  const console = runningCommand(fleet.environment, ['console', 'held-1']);
  await console.until(/# /);
  console.type('cat /var/lib/berth/run/work/found\n');
  await console.until(/^secret\r?$/m);
  console.child.kill();
  await fleet.gone('held-1');
  expect((await berth('job', 'ls')).stdout).toMatch(/^held +Failed +tiny +1 +2 +- /m);
});
