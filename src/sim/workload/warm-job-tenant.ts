// A tenant of jobs whose guests are booted ahead: keeps a warm pool for jobs, changes it, and runs, cancels, retries and deletes jobs of it.

import { ApiError } from '../../api/errors.ts';
import type { WarmPoolSpec } from '../../api/resources/warm-pool.ts';
import { testInstance } from '../../core/testing.ts';
import { type Caller, pickOne, textOf } from './caller.ts';
import { drawScript } from './draw-script.ts';

const sizeMost = 2;
/** How many jobs it has at once, ended ones included. */
const jobsMax = 6;

export class WarmJobTenant {
  readonly #caller: Caller;
  readonly #jobs: string[] = [];
  #keys = 0;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async run(): Promise<void> {
    const { prng, name, parts } = this.#caller;
    const { spec } = testInstance('', { image: 'tiny', cpus: 1, memoryMiB: 256, stopGraceMs: prng.below(2_000) });
    const pool: WarmPoolSpec = {
      template: { labels: {}, spec },
      size: 1 + prng.below(sizeMost),
      state: prng.chance(1, 3) ? 'suspended' : 'running',
      forJobs: true,
    };
    const body = { metadata: { name }, spec: pool };
    const made = await this.#caller.insist((client) =>
      client.create('warmPool', body, { idempotencyKey: `${name}-pool` }),
    );
    if (!this.#note('create', made)) return;
    while (await this.#caller.nextTurn(5 * parts.scenario.betweenCallsMsMean)) {
      const job = pickOne(this.#jobs, prng);
      const draw = prng.below(100);
      if (job === undefined || (draw < 50 && this.#jobs.length < jobsMax)) await this.#create();
      else if (draw < 60) this.#note('cancel', await this.#caller.insist((client) => client.cancelJob(job)));
      else if (draw < 70 && this.#jobs.length < jobsMax) await this.#retry(job);
      else if (draw < 80) await this.#resizePool();
      else await this.#delete(job);
    }
    // Jobs that have begun go on with instances of their own.
    if (prng.chance(1, 2)) this.#note('remove', await this.#caller.insist((client) => client.delete('warmPool', name)));
  }

  async #create(): Promise<void> {
    const { prng, name } = this.#caller;
    const key = `${name}-${++this.#keys}`;
    const spec = {
      warmPool: name,
      script: drawScript(prng),
      timeoutMs: prng.chance(1, 5) ? 2_000 : 8_000,
      retries: { max: prng.below(3), on: ['infrastructure' as const] },
    };
    const body = { metadata: { name: key }, spec };
    const answer = await this.#caller.insist((client) => client.create('job', body, { idempotencyKey: key }));
    // A server that has not heard of the pool yet refuses it.
    if (this.#note('job', answer)) this.#jobs.push(key);
  }

  async #retry(job: string): Promise<void> {
    const answer = await this.#caller.insist((client) => client.retryJob(job));
    if (this.#note('retry', answer) && !(answer instanceof ApiError)) this.#jobs.push(answer.metadata.name);
  }

  async #delete(job: string): Promise<void> {
    this.#jobs.splice(this.#jobs.indexOf(job), 1);
    this.#note('delete', await this.#caller.insist((client) => client.delete('job', job)));
  }

  async #resizePool(): Promise<void> {
    const { prng, name } = this.#caller;
    const found = await this.#caller.insist((client) => client.get('warmPool', name));
    if (found instanceof ApiError) return;
    const { labels, revision } = found.metadata;
    const body = { metadata: { labels, revision }, spec: { ...found.spec, size: prng.below(sizeMost + 1) } };
    this.#note('resize', await this.#caller.insist((client) => client.replace('warmPool', name, body)));
  }

  #note(what: string, answer: Parameters<typeof textOf>[0]): boolean {
    this.#caller.trace(() => `${what} -> ${textOf(answer)}`);
    if (answer instanceof ApiError) return false;
    this.#caller.parts.tally.hit(`warm-job-${what}`);
    return true;
  }
}
