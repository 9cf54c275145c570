// Warm pools of real VMs: server, agent and command line as processes, tiny guests under QEMU. The recipe of docs/warm-pools.md is followed.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fleet, runBerth, startFleet } from './processes.ts';
import { tinyImage } from './tiny-image.ts';

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');

describe('warm pools', () => {
  let directory: string;
  let fleet: Fleet;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-warm-'));
    fleet = await startFleet(directory);
    const { spec } = await tinyImage();
    await fleet.client.create('image', { metadata: { name: 'tiny' }, spec });
  }, 60_000);
  afterAll(async () => {
    await fleet.stop();
    await rm(directory, { recursive: true, force: true });
  });

  it('go as the document says', async () => {
    const document = await readFile(join(import.meta.dirname, '../docs/warm-pools.md'), 'utf8');
    const commands = [...document.matchAll(/```console\n([\s\S]*?)```/g)].flatMap(([, block = '']) =>
      block.split(/^\$ berth /m).slice(1),
    );
    expect(commands).toHaveLength(6);
    for (const command of commands) {
      const [words = '', ...lines] = command.trimEnd().split('\n');
      const { stdout, stderr } = await runBerth(words.split(' '), fleet.environment);
      const pattern = lines.map((line) => line.split('...').map(escaped).join('.*')).join('\n');
      expect([words, stdout.trimEnd(), stderr]).toEqual([
        words,
        expect.stringMatching(new RegExp(`^${pattern}$`)),
        expect.any(String),
      ]);
    }
    // The claimed guest outlives its pool, and is the one that was booted before the claim.
    const { items } = await fleet.client.list('instance', { selector: 'build=17' });
    expect(items).toMatchObject([{ status: { phase: 'Running', claimed: { pool: 'ci', warm: true } } }]);
    await fleet.client.delete('instance', items[0]?.metadata.name ?? '');
  }, 120_000);

  it('resume a suspended guest for a claim', async () => {
    const template = { labels: {}, spec: { image: 'tiny', cpus: 1, memoryMiB: 128, stopGraceMs: 0 } };
    await fleet.client.create('warmPool', {
      metadata: { name: 'asleep' },
      spec: { template: template as never, size: 1, state: 'suspended' }, // the server adds the defaults
    });
    const { revision } = await fleet.client.list('instance');
    const booted = (await fleet.client.list('instance', { selector: 'berth/warm-pool=asleep' })).items[0];
    const name = booted?.metadata.name ?? (await nextOf(fleet, revision));
    const waiting = await fleet.until(name, ({ status }) => status.phase === 'Suspended');
    const claimed = await fleet.client.claimWarmGuest('asleep', { spec: { coldStart: false } });
    expect(claimed.metadata.name).toBe(name);
    const running = await fleet.until(name, ({ status }) => status.phase === 'Running');
    expect(running.status.guest?.startedAtMs).toBe(waiting.status.guest?.startedAtMs);
    await fleet.client.delete('warmPool', 'asleep');
    await fleet.client.delete('instance', name);
    await fleet.gone(name);
  }, 120_000);

  it('give a guest that is booted already to a job', async () => {
    const berth = (...words: string[]) => runBerth(words, fleet.environment);
    await berth(
      ...'warm-pool create ci tiny --guests 1 --cpus 1 --memory 128MiB --stop-grace 0s --for-jobs --wait'.split(' '),
    );
    const waiting = (await fleet.client.list('instance', { selector: 'berth/warm-pool=ci' })).items[0];
    const script = 'echo "a  b\\n%s" $WORD; printf \'%s\\n\' "ä \'q\'"; mkdir out; echo kept >out/file; exit 3';
    const run = ['job', 'run', '-n', 'warm', '--warm-pool', 'ci', '--artifacts', 'out/*', '-e', 'WORD=it is'];
    const { code, stdout, stderr } = await berth(...run, '--', script);
    expect(stderr).toContain('failed with exit code 3');
    expect([code, stdout]).toEqual([3, "a  b\\n%s it is\nä 'q'\n"]);
    const { status } = await fleet.client.get('job', 'warm');
    expect(status).toMatchObject({ attempt: 1, instance: waiting?.metadata.name });
    expect(status.attempts[0]?.artifactsBytes).toBeGreaterThan(0);
    expect((await fleet.client.get('warmPool', 'ci')).status).toMatchObject({ hits: 1, misses: 0 });
    expect(await berth('run', '--from-pool', 'ci')).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('wait for jobs'),
    });
    await fleet.client.delete('job', 'warm');
    await fleet.client.delete('warmPool', 'ci');
  }, 120_000);
});

/** The name of the next instance of the pool that is created. */
async function nextOf({ client }: Fleet, revision: number): Promise<string> {
  for await (const change of client.watch('instance', { revision }, AbortSignal.timeout(60_000)))
    if (change.type === 'put' && change.resource.metadata.labels['berth/warm-pool'] === 'asleep')
      return change.resource.metadata.name;
  throw new Error('the pool creates no guest');
}
