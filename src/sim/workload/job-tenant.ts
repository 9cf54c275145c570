// A tenant of jobs: runs programs that print, wait, fail and hang, and cancels, retries and deletes jobs. The programs are
// in the small language of the driver `fake`.

import { ApiError } from '../../api/errors.ts';
import type { JobSpec } from '../../api/resources/job.ts';
import type { Prng } from '../../base/prng.ts';
import { type Caller, pickOne, textOf } from './caller.ts';
import { imageNames } from './draw-instance.ts';
import { drawScript } from './draw-script.ts';

/** How many jobs it has at once, ended ones included. */
const jobsMax = 8;

export class JobTenant {
  readonly #caller: Caller;
  readonly #jobs: string[] = [];
  #keys = 0;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async run(): Promise<void> {
    const { prng, parts } = this.#caller;
    while (await this.#caller.nextTurn(5 * parts.scenario.betweenCallsMsMean)) {
      const job = pickOne(this.#jobs, prng);
      const draw = prng.below(100);
      if (job === undefined || (draw < 55 && this.#jobs.length < jobsMax)) await this.#create();
      else if (draw < 70) await this.#cancel(job);
      else if (draw < 80 && this.#jobs.length < jobsMax) await this.#retry(job);
      else await this.#delete(job);
    }
  }

  async #create(): Promise<void> {
    const { prng, name, parts } = this.#caller;
    const key = `${name}-${++this.#keys}`;
    const body = { metadata: { name: key }, spec: drawJob(prng, name) };
    const answer = await this.#caller.insist((client) => client.create('job', body, { idempotencyKey: key }));
    parts.tally.hit('job-created');
    this.#caller.trace(() => `create job ${key} -> ${textOf(answer)}`);
    if (answer instanceof ApiError)
      parts.onViolation(3, `${name} was refused job ${key}: ${answer.code} ${answer.message}`);
    else this.#jobs.push(key);
  }

  async #cancel(job: string): Promise<void> {
    const answer = await this.#caller.insist((client) => client.cancelJob(job));
    this.#caller.trace(() => `cancel job ${job} -> ${textOf(answer)}`);
    this.#judge(answer, 'cancel', job);
  }

  async #retry(job: string): Promise<void> {
    const answer = await this.#caller.insist((client) => client.retryJob(job));
    this.#caller.trace(() => `retry job ${job} -> ${textOf(answer)}`);
    if (this.#judge(answer, 'retry', job) && !(answer instanceof ApiError)) this.#jobs.push(answer.metadata.name);
  }

  async #delete(job: string): Promise<void> {
    this.#jobs.splice(this.#jobs.indexOf(job), 1);
    const answer = await this.#caller.insist((client) => client.delete('job', job));
    this.#caller.trace(() => `delete job ${job} -> ${textOf(answer)}`);
    this.#judge(answer, 'delete', job);
  }

  /** `Conflict`: it has ended already, or has not ended yet. It may be old and gone, or newer than a restored backup. */
  #judge(answer: object, what: string, job: string): boolean {
    if (!(answer instanceof ApiError)) return true;
    if (answer.code !== 'Conflict' && answer.code !== 'NotFound')
      this.#caller.parts.onViolation(3, `${what} of job ${job} was refused: ${answer.code} ${answer.message}`);
    return false;
  }
}

function drawJob(prng: Prng, tenant: string): Partial<JobSpec> {
  return {
    label: imageNames[prng.below(imageNames.length)] ?? 'tiny',
    cpus: 1,
    memoryMiB: 256,
    script: drawScript(prng),
    // Short enough for the calm: a program that hangs ends with its time.
    timeoutMs: prng.chance(1, 5) ? 2_000 : 8_000,
    retries: { max: prng.below(3), on: prng.chance(1, 3) ? ['infrastructure', 'failure'] : ['infrastructure'] },
    ...(prng.chance(1, 6) ? { holdOnFailureMs: 1_000 * (1 + prng.below(10)) } : {}),
    ...(prng.chance(1, 4) ? { supersedes: `${tenant}-${prng.below(2)}` } : {}),
    ...(prng.chance(1, 4) ? { priority: prng.below(10) } : {}),
  };
}
