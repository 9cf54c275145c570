// A tenant of workloads: asks for copies, more and fewer of them, updates them, pauses an update, goes back, and removes the workload.

import { ApiError } from '../../api/errors.ts';
import type { WorkloadSpec } from '../../api/resources/workload.ts';
import { testWorkloadSpec } from '../../core/testing.ts';
import { type Caller, textOf } from './caller.ts';

const replicasMost = 4;

export class ReplicaTenant {
  readonly #caller: Caller;
  /** Of the workload that it has. */
  #name: string | undefined;
  #made = 0;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async run(): Promise<void> {
    const { prng, parts } = this.#caller;
    while (await this.#caller.nextTurn(6 * parts.scenario.betweenCallsMsMean)) {
      const draw = prng.below(100);
      if (this.#name === undefined) await this.#create();
      else if (draw < 40) await this.#scale(this.#name);
      else if (draw < 65) await this.#change(this.#name, 'update', (spec) => updated(spec, prng.below(3)));
      else if (draw < 75) await this.#change(this.#name, 'pause', (spec) => ({ ...spec, paused: !spec.paused }));
      else if (draw < 85) await this.#undo(this.#name);
      else if (draw < 90) await this.#remove(this.#name);
    }
    if (this.#name === undefined) return;
    if (prng.chance(1, 2)) await this.#remove(this.#name);
    else await this.#change(this.#name, 'resume', (spec) => ({ ...spec, paused: false }));
  }

  async #create(): Promise<void> {
    const { prng, name } = this.#caller;
    const key = `${name}-${++this.#made}`;
    const spec = testWorkloadSpec(
      { replicas: 1 + prng.below(replicasMost) },
      { cpus: 1, memoryMiB: 256, exclusive: prng.chance(1, 4), stopGraceMs: prng.below(2_000) },
    );
    const strategy = { ...spec.strategy, maxSurge: prng.below(2), maxUnavailable: 1 };
    const body = { metadata: { name: key }, spec: { ...spec, strategy } };
    const answer = await this.#caller.insist((client) => client.create('workload', body, { idempotencyKey: key }));
    if (this.#note(`create ${key}`, answer)) this.#name = key;
  }

  async #scale(workload: string): Promise<void> {
    const body = { replicas: this.#caller.prng.below(replicasMost + 1) };
    this.#note(
      `scale ${workload} to ${body.replicas}`,
      await this.#caller.insist((client) => client.scaleWorkload(workload, body)),
    );
  }

  async #undo(workload: string): Promise<void> {
    this.#note(`undo ${workload}`, await this.#caller.insist((client) => client.undoWorkload(workload)));
  }

  async #remove(workload: string): Promise<void> {
    const answer = await this.#caller.insist((client) => client.delete('workload', workload));
    if (this.#note(`remove ${workload}`, answer)) this.#name = undefined;
  }

  async #change(workload: string, what: string, wanted: (spec: WorkloadSpec) => WorkloadSpec): Promise<void> {
    const found = await this.#caller.insist((client) => client.get('workload', workload));
    if (found instanceof ApiError) return;
    const { labels, revision } = found.metadata;
    const body = { metadata: { labels, revision }, spec: wanted(found.spec) };
    this.#note(
      `${what} ${workload}`,
      await this.#caller.insist((client) => client.replace('workload', workload, body)),
    );
  }

  #note(what: string, answer: unknown): boolean {
    const { parts } = this.#caller;
    this.#caller.trace(() => `${what} -> ${answer instanceof ApiError ? textOf(answer) : 'done'}`);
    if (answer instanceof ApiError) return false;
    parts.tally.hit(`workload-${what.split(' ', 1)[0]}`);
    return true;
  }
}

/** Another template, or the same. */
function updated(spec: WorkloadSpec, build: number): WorkloadSpec {
  return { ...spec, template: { ...spec.template, labels: { build: String(build) } } };
}
