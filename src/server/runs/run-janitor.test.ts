import { beforeEach, expect, it } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { createManualClock } from '../../base/manual-clock.ts';
import { system } from '../../base/system.ts';
import type { Job } from '../../api/resources/job.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import { MemoryRunStorage } from './memory-run-storage.ts';
import { defaultRunLimits, RunFiles } from './run-files.ts';
import { RunJanitor } from './run-janitor.ts';

let files: RunFiles;
let jobs: { value: Job }[];
let instances: Set<string>;
const clock = createManualClock();

beforeEach(() => {
  files = new RunFiles({
    storage: new MemoryRunStorage(),
    limits: { ...defaultRunLimits, projectBytesMax: 25 },
    clock,
  });
  jobs = [];
  instances = new Set();
});

function janitor(leads = () => true): RunJanitor {
  // The codec: the part of a snapshot that it reads.
  const cache = {
    list: () => jobs,
    instanceById: (id: string) => (instances.has(id) ? {} : undefined),
  } as unknown as Snapshot;
  return new RunJanitor({ runFiles: files, cache, clock, log: silentLogger, leads });
}

async function write(instanceId: string, bytes: number): Promise<void> {
  const content = (async function* () {
    yield await Promise.resolve(Buffer.alloc(bytes));
  })();
  await files.append({ instanceId, part: 'log' }, { offset: 0, bytes: content });
}

function job(project: string, ...attempts: [instanceId: string, endedAtMs?: number][]): void {
  const told = attempts.map(([instanceId, endedAtMs]) => ({
    instanceId,
    createdAtMs: 0,
    ...(endedAtMs === undefined ? {} : { endedAtMs, outcome: 'succeeded' }),
  }));
  jobs.push({ value: { metadata: { project }, status: { attempts: told } } as unknown as Job });
}

const left = async (): Promise<string[]> => (await files.list()).map(({ instanceId }) => instanceId).sort();

it('removes what neither a job nor an instance names, at the second look', async () => {
  for (const id of ['inst_a', 'inst_b', 'inst_c', 'inst_d']) await write(id, 1);
  job('p', ['inst_a', 5]);
  instances.add('inst_b');
  const one = janitor();
  await one.pass();
  expect(await left()).toEqual(['inst_a', 'inst_b', 'inst_c', 'inst_d']);
  job('p', ['inst_d']); // created by another control plane
  await one.pass();
  expect(await left()).toEqual(['inst_a', 'inst_b', 'inst_d']);
});

it('removes the files of the attempts that ended first, from projects with too many only', async () => {
  for (const id of ['inst_a', 'inst_b', 'inst_c', 'inst_d', 'inst_e']) await write(id, 10);
  job('p', ['inst_b', 2], ['inst_a', 1]); // 40 of 25: two go
  job('p', ['inst_c', 3]);
  job('p', ['inst_d']);
  job('q', ['inst_e', 0]);
  await janitor().pass();
  expect(await left()).toEqual(['inst_c', 'inst_d', 'inst_e']);
});

it('keeps the files of attempts that are under way, however much they are', async () => {
  await write('inst_a', 30);
  job('p', ['inst_a']);
  await janitor().pass();
  expect(await left()).toEqual(['inst_a']);
});

it('looks by itself, where it leads', async () => {
  await write('inst_a', 1);
  const [leading, following] = [janitor(), janitor(() => false)];
  following.start();
  await clock.advanceSettled(700_000, system.turn);
  expect(await left()).toEqual(['inst_a']);
  leading.start();
  await clock.advanceSettled(700_000, system.turn);
  expect(await left()).toEqual([]);
  leading.stop();
  following.stop();
});
