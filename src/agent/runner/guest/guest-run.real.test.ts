// A program in a guest that is real: the tiny image under QEMU, which knows nothing of runs but its user-data.

import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunSpec, RunStatus } from '../../../api/resources/run.ts';
import { silentLogger } from '../../../base/log.ts';
import { seededPrng } from '../../../base/prng.ts';
import { randomSecret, systemClock } from '../../../base/system.ts';
import type { Driver } from '../../drivers/driver.ts';
import { makeQemuTestHost, type QemuTestHost, testImageCache, testSpec } from '../../drivers/qemu/test-host.ts';
import { buildImage } from '../../images/build/build.ts';
import { createHostRunFiles } from '../files/host-run-files.ts';
import { Runs } from '../runs.ts';

let directory: string;
let host: QemuTestHost;
let image: { readonly path: string; readonly digest: string };

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-runs-'));
  image = await buildImage('tiny', { directory });
  host = await makeQemuTestHost();
});
afterAll(async () => {
  await host.dispose();
  await rm(directory, { recursive: true, force: true });
});

/** An agent's runs and driver. */
class Hands {
  readonly driver: Driver;
  readonly runs: Runs;
  readonly sent: Record<'log' | 'artifacts', Buffer>;
  readonly #assigned: { instanceId: string; incarnation: number; run: RunSpec };
  readonly #over = new AbortController();
  #changed: () => void = () => {};

  constructor(run: RunSpec, sent: Hands['sent'] = { log: Buffer.alloc(0), artifacts: Buffer.alloc(0) }) {
    this.sent = sent;
    this.#assigned = { instanceId: testSpec().instanceId, incarnation: 1, run };
    this.driver = host.open({
      images: {
        ...testImageCache(host.imageDirectory),
        ensure: async () => ({ ...image, format: 'qcow2', virtualSizeBytes: 32 * 1024 * 1024 }),
      },
    });
    this.runs = new Runs({
      parts: { files: createHostRunFiles({ directory: join(directory, 'runs') }), randomSecret },
      send: async ({ part, offset, bytes }) => {
        const known = this.sent[part];
        this.sent[part] = Buffer.concat([known, bytes.subarray(known.length - offset)]);
        this.#changed();
        return this.sent[part].length;
      },
      onChange: () => this.#changed(),
      clock: systemClock,
      prng: seededPrng(1),
      log: silentLogger,
    });
  }

  async open(): Promise<void> {
    await this.driver.recover();
    await this.runs.open();
    this.driver.watch(() => this.#look(), this.#over.signal);
    this.#look();
  }

  async create(): Promise<void> {
    const { signal } = new AbortController();
    const program = await this.runs.prepare(this.#assigned, this.driver, signal);
    if (program === undefined) throw new Error('it was given a program');
    const { userData, runDisk } = program;
    await this.driver.create(testSpec({ memoryMiB: 128, userData, runDisk }), signal);
    await program.release();
  }

  get status(): RunStatus | undefined {
    return this.runs.statusOf(this.#assigned);
  }

  get guest() {
    return this.driver.guests().find(({ instanceId }) => instanceId === this.#assigned.instanceId);
  }

  async until(met: () => boolean): Promise<void> {
    while (!met()) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#changed = resolve;
      await promise;
    }
  }

  async close(): Promise<void> {
    this.#over.abort();
    await Promise.all([this.runs.close(), this.driver.close()]);
  }

  #look(): void {
    this.runs.look(this.#assigned, this.guest, this.driver);
    this.#changed();
  }
}

const run: RunSpec = {
  script: [
    'echo "in $(pwd) with $GREETING on $(uname)"',
    'echo warned >&2',
    'i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i + 1)); done',
    'echo made >result.txt',
    'sleep 3',
    'echo last',
    'exit 5',
  ].join('\n'),
  env: { GREETING: "it's" },
  artifacts: ['*.txt'],
  timeLimitMs: 600_000,
  graceMs: 1000,
  holdOnFailure: false,
};

it('runs once, over an agent that starts again, and powers off', { timeout: 300_000 }, async () => {
  const first = new Hands(run);
  await first.open();
  await first.create();
  await first.until(() => first.sent.log.includes('line 1000\n'));
  await first.close();

  const second = new Hands(run, first.sent);
  await second.open();
  await second.until(() => second.status?.state === 'ended');
  expect(second.status).toMatchObject({ outcome: 'exited', exitCode: 5 });
  const lines = second.sent.log.toString().split('\n').slice(0, -1);
  const texts = (stream: string) =>
    lines.filter((line) => line.includes(` ${stream} F `)).map((line) => line.replace(/^\S+ \S+ F /, ''));
  const counted = Array.from({ length: 2000 }, (_, i) => `line ${i}`);
  expect(texts('stdout')).toEqual(["in /var/lib/berth/run/work with it's on Linux", ...counted, 'last']);
  expect(texts('stderr')).toEqual(['warned']);
  const listed = execFileSync('tar', ['xOf', '-', 'result.txt'], { input: second.sent.artifacts });
  expect(listed.toString()).toBe('made\n');

  await second.until(() => second.guest?.state !== 'running');
  expect(second.guest?.state).toBe('exited');
  await second.driver.remove(testSpec().instanceId);
  await second.runs.forget(testSpec().instanceId);
  expect(await stat(join(directory, 'runs', testSpec().instanceId)).catch(() => undefined)).toBeUndefined();
  await second.close();
});
