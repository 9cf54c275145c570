// A tenant of tasks: reserves room for a while. Then an instance takes the room over, or the tenant gives it up, or its time runs out.

import { ApiError } from '../../api/errors.ts';
import { keyLabel } from '../intents.ts';
import { drawPlacement } from '../rules.ts';
import { type Caller, pickOne, textOf } from './caller.ts';
import { drawInstance, imageNames } from './draw-instance.ts';

/** Instances of this tenant, besides those of the others. */
const takeOversMax = 8;
const tasksMax = 10;
const tasksLeftMax = 3;

export class TaskTenant {
  readonly #caller: Caller;
  /** Names of tasks. */
  readonly #tasks: string[] = [];
  /** Ids of instances that took over the room of a task. */
  readonly #instances: string[] = [];
  #keys = 0;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async run(): Promise<void> {
    const { prng, parts } = this.#caller;
    while (await this.#caller.nextTurn(6 * parts.scenario.betweenCallsMsMean)) {
      const key = `${this.#caller.name}-${++this.#keys}`;
      const task = pickOne(this.#tasks, prng);
      const draw = prng.below(100);
      if (draw >= 90) await this.#askForCapacity();
      else if (task === undefined || (draw < 45 && this.#tasks.length < tasksMax)) await this.#reserve(key);
      else if (draw < 80 && this.#instances.length < takeOversMax) await this.#takeOver(key, task);
      else await this.#giveUp(task);
    }
    await this.#end();
  }

  /** Answers to what-if questions must change nothing; the checkers see to that. */
  async #askForCapacity(): Promise<void> {
    const { prng, name, parts } = this.#caller;
    await this.#caller.insist((client) => client.capacity({ spec: { cpus: 1, memoryMiB: 256 }, losses: 2 }));
    await this.#caller.insist((client) =>
      client.plan({ spec: { ...drawInstance(prng), placement: drawPlacement(prng, name) } }),
    );
    await this.#caller.insist((client) => client.candidates({ spec: { cpus: 2, memoryMiB: 512 } }));
    parts.tally.hit('capacity-asked');
  }

  async #reserve(key: string): Promise<void> {
    const { prng, name, parts } = this.#caller;
    const spec = {
      cpus: 1 + prng.below(3),
      memoryMiB: 256 * (1 + prng.below(4)),
      ttlMs: 1000 + prng.below(40_000),
      ...(prng.chance(1, 2) ? { image: imageNames[0] ?? 'tiny' } : {}),
    };
    const body = { metadata: { name: key }, spec };
    const answer = await this.#caller.insist((client) => client.create('task', body, { idempotencyKey: key }));
    parts.tally.hit('task-created');
    this.#caller.trace(() => `reserve ${key} -> ${textOf(answer)}`);
    if (answer instanceof ApiError)
      parts.onViolation(3, `${name} was refused task ${key}: ${answer.code} ${answer.message}`);
    else this.#tasks.push(key);
  }

  async #takeOver(key: string, task: string): Promise<void> {
    const { prng, parts } = this.#caller;
    this.#forget(task);
    const instance = await this.#caller.createInstance({
      key,
      body: {
        metadata: { name: key, labels: { [keyLabel]: key } },
        spec: { ...drawInstance(prng), powerState: 'running', placement: { task } },
      },
      // The task may have ended, or this control plane may not know it yet.
      mayRefuse: (code) => code === 'InvalidRequest',
    });
    if (!instance) return;
    this.#instances.push(instance.id);
    parts.tally.hit('task-named');
  }

  async #giveUp(task: string): Promise<void> {
    this.#forget(task);
    const answer = await this.#caller.insist((client) => client.delete('task', task));
    this.#caller.trace(() => `give up ${task} -> ${textOf(answer)}`);
  }

  #forget(task: string): void {
    this.#tasks.splice(this.#tasks.indexOf(task), 1);
  }

  /** Each task holds its room for up to a minute, then the next gets it: a few may wait for that, hundreds would never end. */
  async #end(): Promise<void> {
    for (const task of this.#tasks.slice(tasksLeftMax))
      await this.#caller.insist((client) => client.delete('task', task));
    for (const id of this.#instances) if (!this.#caller.prng.chance(1, 2)) await this.#caller.deleteInstance(id);
  }
}
