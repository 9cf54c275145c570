// One case of suite `scheduler`, in a process of its own so that its memory is its own: `scheduler-case.ts CASE HOSTS INSTANCES DECISIONS`.
// A decision is: what does this waiting instance ask for, which host is best, which of its providers gives what; and the claim is laid over the
// ledger, so that the next decision sees it. The whole Plan (conditions, event, the queue's part) is timed beside it. Instances end at
// random between decisions, so that the fleet stays as full as it was.

import { performance } from 'node:perf_hooks';
import type { Instance } from '../src/api/resources/instance.ts';
import { placement } from '../src/core/controllers/placement.ts';
import { claim } from '../src/core/ledger/ledger.ts';
import { requestOf } from '../src/core/scheduler/request.ts';
import { schedule } from '../src/core/scheduler/schedule.ts';
import { seededPrng } from '../src/base/prng.ts';
import { type Assumption, Cache } from '../src/core/state/cache.ts';
import { decodeRecord, encodeRecord } from '../src/core/state/codec.ts';
import { type Context, defaultPolicy } from '../src/core/state/context.ts';
import { keyOf } from '../src/core/state/keys.ts';
import type { AnyRecord } from '../src/core/state/records.ts';
import { median } from './row.ts';
import { mixAffinity, mixHosts, mixImages, mixM, mixRequests } from './mix.ts';

export interface CaseFigures {
  readonly perSecond: number;
  /** Of whole Plans, from the waiting instance to the changed cache. */
  readonly plansPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly unplaced: number;
  readonly rssMb: number;
  readonly naivePerSecond: number;
}

const [name = 'mix', hostCount = 5_000, instanceCount = 50_000, decisionCount = 50_000] = process.argv
  .slice(2)
  .map((word, i) => (i === 0 ? word : Number(word)));

const hosts = Number(hostCount);
const cache = new Cache(() => 0);
const prng = seededPrng(1, 'context');
let ids = 0;
const ctx: Context = {
  nowMs: 1_000_000,
  monotonicMs: 1_000_000,
  prng,
  policy: defaultPolicy,
  newId: (prefix) => `${prefix}_${String(++ids).padStart(26, '0')}`,
};

/** As a store's event: the record has been bytes. */
function add(record: AnyRecord): void {
  const key = keyOf(record);
  const revision = cache.revision + 1;
  cache.apply([{ key, value: decodeRecord(key, encodeRecord(record)), revision }], revision);
}

/** The plan is durable; events of instances are of no interest here and go at once. */
function confirm(assumption: Assumption): void {
  const revision = cache.revision + 1;
  cache.confirm(assumption, revision);
  const events = assumption.plan.changes.filter(({ key }) => key.startsWith('events/'));
  cache.apply(
    events.map(({ key }) => ({ key, value: null, revision: revision + 1 })),
    revision + 1,
  );
}

const live: string[] = [];
let unplaced = 0;

interface Took {
  readonly decisionMs: number;
  readonly planMs: number;
}

/** Makes the instance, then decides on it, once for the decision alone and once for the whole Plan. */
function decide(draw: () => Instance): Took {
  const drawn = draw();
  add(drawn);
  const key = keyOf(drawn);
  const decisionMs = decideAlone(cache.get('instance', key)?.value ?? drawn);
  const start = performance.now();
  const plan = placement.reconcile(cache, key, ctx);
  const assumed = cache.assume(plan);
  const planMs = performance.now() - start;
  if (!assumed.ok) throw new Error(`the Plan for ${key} does not hold: ${assumed.key}`);
  confirm(assumed);
  const decided = cache.get('instance', key);
  if (decided?.value.status.host === undefined) {
    unplaced += 1;
    remove(key);
  } else live.push(decided.key); // the cache's own text, not another like it
  return { decisionMs, planMs };
}

/** Of the record as it waits in the cache: what it asks for was worked out when it came into the queue. The claim is taken back after the time. */
function decideAlone(instance: Instance): number {
  const start = performance.now();
  const request = requestOf(cache, instance);
  const placed = schedule(cache, request);
  if (!placed.placed) return performance.now() - start;
  const { host, held, driver } = placed;
  const { id, project, name: called } = instance.metadata;
  const consumer = { id, incarnation: 1, project, name: called };
  const plan = { changes: claim(cache, { consumer, host, held, driver, ports: request.ports }) };
  const assumed = cache.assume(plan);
  const took = performance.now() - start;
  if (assumed.ok) cache.forget(assumed);
  return took;
}

function remove(key: string): void {
  const instance = cache.get('instance', key);
  if (!instance) return;
  const revision = cache.revision + 1;
  const allocations = cache.allocationsOfConsumer(instance.value.metadata.id);
  cache.apply(
    [...allocations.map((allocation) => allocation.key), key].map((each) => ({ key: each, value: null, revision })),
    revision,
  );
}

function removeOne(): void {
  const at = prng.below(live.length);
  const key = live[at];
  const last = live.pop();
  if (key === undefined || last === undefined) return;
  if (at < live.length) live[at] = last;
  remove(key);
}

/** What a plain pass over typed arrays does: best fit of two resources. The machine's own measure beside ours. */
function naivePerSecond(): number {
  const cpu = Float64Array.from({ length: hosts }, (_, i) => 20 + ((i * 7) % 100));
  const memory = Float64Array.from({ length: hosts }, (_, i) => 100 + ((i * 13) % 400));
  const turns = Math.max(20, Math.ceil(20_000_000 / hosts));
  const start = performance.now();
  let sum = 0;
  for (let turn = 0; turn < turns; turn++) {
    const askedCpu = 1 + (turn % 16);
    const askedMemory = 4 * askedCpu;
    let best = -1;
    let bestLeft = Number.POSITIVE_INFINITY;
    for (let i = 0; i < hosts; i++) {
      const leftCpu = (cpu[i] ?? 0) - askedCpu;
      const leftMemory = (memory[i] ?? 0) - askedMemory;
      if (leftCpu < 0 || leftMemory < 0) continue;
      const left = leftCpu / 128 + leftMemory / 768;
      if (left < bestLeft) {
        bestLeft = left;
        best = i;
      }
    }
    sum += best;
  }
  if (sum < 0) throw new Error('the plain pass chose nothing');
  return (1000 * turns) / (performance.now() - start);
}

/** The median of this many parts of the run, each of thousands of decisions: what else the machine does slows some of them. */
const parts = 20;

function ratePerSecond(timesMs: Float64Array): number {
  const size = Math.floor(timesMs.length / parts);
  const rates = Array.from({ length: parts }, (_, part) => {
    const sumMs = timesMs.subarray(part * size, (part + 1) * size).reduce((sum, ms) => sum + ms, 0);
    return (1000 * size) / sumMs;
  });
  return median(rates);
}

for (const image of mixImages()) add(image);
for (const records of mixHosts(hosts)) for (const record of records) add(record);
const fill = mixRequests(mixM, { instances: Number(instanceCount), unique: false, seed: 'fill' });
while (live.length < Number(instanceCount)) decide(fill);
unplaced = 0;

const draw = mixRequests(name === 'affinity' ? mixAffinity : mixM, {
  instances: Number(instanceCount),
  unique: name === 'unique',
  seed: 'draw',
});
const decisions = Number(decisionCount);
for (let i = 0; i < decisions / 5; i++) {
  decide(draw);
  removeOne();
}
unplaced = 0;
const times = new Float64Array(decisions);
/** Of whole Plans. */
const planTimes = new Float64Array(decisions);
for (let i = 0; i < decisions; i++) {
  const { decisionMs, planMs } = decide(draw);
  times[i] = decisionMs;
  planTimes[i] = planMs;
  removeOne();
}
const perSecond = ratePerSecond(times);
const plansPerSecond = ratePerSecond(planTimes);
times.sort();
const at = (share: number): number => 1000 * (times[Math.min(decisions - 1, Math.floor(share * decisions))] ?? 0);
// At rest: what was freed goes back to the machine a little later.
for (let i = 0; i < 3; i++) {
  globalThis.gc?.();
  await new Promise((resolve) => setTimeout(resolve, 300));
}
const figures: CaseFigures = {
  perSecond,
  plansPerSecond,
  p50Us: at(0.5),
  p99Us: at(0.99),
  unplaced,
  rssMb: process.memoryUsage.rss() / 2 ** 20,
  naivePerSecond: naivePerSecond(),
};
console.log(JSON.stringify(figures));
