// A tenant of workloads that are updated all the time: also to revisions that never become ready, with pauses, undo and other numbers of
// copies. Leaves each with a template that becomes ready.

import { ApiError } from '../../api/errors.ts';
import type { WorkloadSpec } from '../../api/resources/workload.ts';
import type { Prng } from '../../base/prng.ts';
import { testWorkloadSpec } from '../../core/testing.ts';
import { type Caller, textOf } from './caller.ts';

const replicasMost = 5;
/** Of a fake guest: nothing listens there, so that a check of it never passes. */
const closedPort = 9;

export class UpdatingTenant {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async run(): Promise<void> {
    const { prng, name, parts } = this.#caller;
    if (!(await this.#create(name))) return;
    while (await this.#caller.nextTurn(8 * parts.scenario.betweenCallsMsMean)) {
      const draw = prng.below(100);
      if (draw < 35)
        await this.#change('update', (spec) => withTemplate(spec, { build: prng.below(3), broken: false }));
      else if (draw < 60)
        await this.#change('break', (spec) => withTemplate(spec, { build: prng.below(3), broken: true }));
      else if (draw < 70) await this.#change('pause', (spec) => ({ ...spec, paused: !spec.paused }));
      else if (draw < 85) await this.#undo();
      else await this.#scale();
    }
    await this.#change('mend', (spec) => ({ ...withTemplate(spec, { build: 9, broken: false }), paused: false }));
  }

  async #create(name: string): Promise<boolean> {
    const { prng } = this.#caller;
    const instance = { cpus: 1, memoryMiB: 256, stopGraceMs: prng.below(2_000) };
    const spec = testWorkloadSpec({ replicas: 1 + prng.below(replicasMost) }, instance);
    const strategy: WorkloadSpec['strategy'] = {
      ...spec.strategy,
      ...boundsOf(prng),
      ...{ minHealthyMs: 0, progressDeadlineMs: 15_000 },
    };
    const body = { metadata: { name }, spec: { ...spec, strategy } };
    return this.#note(
      'create',
      await this.#caller.insist((client) => client.create('workload', body, { idempotencyKey: name })),
    );
  }

  async #scale(): Promise<void> {
    const { prng, name } = this.#caller;
    const body = { replicas: prng.below(replicasMost + 1) };
    this.#note('scale', await this.#caller.insist((client) => client.scaleWorkload(name, body)));
  }

  async #undo(): Promise<void> {
    const { name } = this.#caller;
    this.#note('undo', await this.#caller.insist((client) => client.undoWorkload(name)));
  }

  async #change(what: string, wanted: (spec: WorkloadSpec) => WorkloadSpec): Promise<void> {
    const { name } = this.#caller;
    const found = await this.#caller.insist((client) => client.get('workload', name));
    if (found instanceof ApiError) return;
    const { labels, revision } = found.metadata;
    const body = { metadata: { labels, revision }, spec: wanted(found.spec) };
    const answer = await this.#caller.insist((client) => client.replace('workload', name, body));
    // The automatic revert was first: the last change must not be lost.
    if (!this.#note(what, answer) && what === 'mend') await this.#change(what, wanted);
  }

  #note(what: string, answer: unknown): boolean {
    const { parts, name } = this.#caller;
    this.#caller.trace(() => `${what} ${name} -> ${answer instanceof ApiError ? textOf(answer) : 'done'}`);
    if (answer instanceof ApiError) return false;
    parts.tally.hit(`rolling-${what}`);
    return true;
  }
}

/** At least one of them is not 0. */
function boundsOf(prng: Prng): Pick<WorkloadSpec['strategy'], 'maxSurge' | 'maxUnavailable'> {
  const maxSurge = prng.below(3);
  return { maxSurge, maxUnavailable: maxSurge === 0 ? 1 + prng.below(2) : prng.below(2) };
}

function withTemplate(spec: WorkloadSpec, { build, broken }: { build: number; broken: boolean }): WorkloadSpec {
  const { checks: _checks, ...instance } = spec.template.spec;
  const checks = { readiness: { tcp: { port: closedPort }, periodMs: 1_000 } };
  return {
    ...spec,
    template: { labels: { build: String(build) }, spec: broken ? { ...instance, checks } : instance },
  };
}
