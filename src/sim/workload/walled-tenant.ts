// A tenant with a token of one project among many: it works there, and tries all that it can on what others have. No answer may mention
// them, and nothing of theirs may change. What it would make or change there bears the label `rogue`, which a checker looks for.

import { ApiError } from '../../api/errors.ts';
import type { Client } from '../../api/client/client.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { keyLabel } from '../intents.ts';
import { rogueLabel } from '../world/rogue-client.ts';
import { type Caller, pickOne } from './caller.ts';
import { drawInstance } from './draw-instance.ts';

/** No other tenant has anything in it. */
export const walledProject = 'walled';

const instancesMax = 6;
const commitsTriedMax = 16;
/** How others name what they make: workload.ts. */
const namesOfOthers = /\b(tenant|crowd|holder|keeper|runner)-\d+-\w+/;
const refusals: ReadonlySet<ApiError['code']> = new Set<ApiError['code']>(['NotFound', 'Forbidden']);

export class WalledTenant {
  readonly #caller: Caller;
  readonly #instances: string[] = [];
  #keys = 0;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async run(): Promise<void> {
    const { prng, parts } = this.#caller;
    while (await this.#caller.nextTurn(2 * parts.scenario.betweenCallsMsMean)) {
      const draw = prng.below(100);
      if (draw < 20 && this.#instances.length < instancesMax) await this.#create();
      else if (draw < 50) await this.#lookAround();
      else if (draw < 60) await this.#deleteOwn();
      else await this.#reachOver();
    }
    while (this.#instances.length > 0 && prng.chance(1, 2)) await this.#deleteOwn();
  }

  async #create(): Promise<void> {
    const { prng, name, parts } = this.#caller;
    const key = `${name}-${++this.#keys}`;
    // Its role permits neither priorities above 0 nor preemption.
    const { priority: _priority, preemption: _preemption, ...spec } = drawInstance(prng);
    const made = await this.#caller.createInstance({
      key,
      body: { metadata: { name: key, project: walledProject, labels: { [keyLabel]: key } }, spec },
      mayRefuse: (code) => code === 'Forbidden', // by a control plane that has not heard of the token yet
    });
    if (!made) return;
    this.#instances.push(made.id);
    parts.tally.hit('walled-create');
  }

  async #deleteOwn(): Promise<void> {
    const [id] = this.#instances.splice(this.#caller.prng.below(this.#instances.length), 1);
    if (id !== undefined) await this.#caller.deleteInstance(id, { project: walledProject });
  }

  /** All that it may read, by one way or another. */
  async #lookAround(): Promise<void> {
    const { prng } = this.#caller;
    const own = pickOne(this.#instances, prng);
    const looks: Readonly<Record<string, (client: Client) => Promise<unknown>>> = {
      instances: (client) => client.list('instance'),
      jobs: (client) => client.list('job'),
      tasks: (client) => client.list('task'),
      volumes: (client) => client.list('volume'),
      events: (client) => client.list('event'),
      queue: (client) => client.queue(),
      capacity: (client) => client.capacity({ project: walledProject, spec: { cpus: 1, memoryMiB: 256 }, losses: 1 }),
      plan: (client) => client.plan({ metadata: { project: walledProject }, spec: { image: 'tiny', cpus: 2 } }),
      ...(own === undefined
        ? {}
        : {
            own: (client: Client) => client.get('instance', own, { project: walledProject }),
            explanation: (client: Client) => client.explain(own, { project: walledProject }),
          }),
    };
    const [what, look] = pickOne(Object.entries(looks), prng) ?? [];
    if (what === undefined || look === undefined) return;
    const told = JSON.stringify(await this.#caller.insist(look));
    this.#caller.parts.tally.hit('walled-look');
    const name = namesOfOthers.exec(told)?.[0];
    if (name !== undefined) this.#fault(`was told of ${name} by ${what}: ${told.slice(0, 1000)}`);
  }

  /** Something of others, by all ways. */
  async #reachOver(): Promise<void> {
    const { prng } = this.#caller;
    const other = this.#someInstanceOfOthers();
    if (other === undefined) return;
    const { project, id, name } = other.metadata;
    const named = prng.chance(2, 3) ? name : id;
    const labels = { [rogueLabel]: 'yes' };
    const tries: Readonly<Record<string, (client: Client) => Promise<unknown>>> = {
      get: (client) => client.get('instance', named, { project }),
      explain: (client) => client.explain(named, { project }),
      delete: (client) => client.delete('instance', named, { project }),
      replace: (client) => client.replace('instance', name, { metadata: { labels, project }, spec: other.spec }),
      create: (client) => client.create('instance', { metadata: { project, labels }, spec: { image: 'tiny' } }),
      list: (client) => client.list('instance', { project }),
      plan: (client) => client.plan({ metadata: { project }, spec: { image: 'tiny' } }),
      hosts: (client) => client.list('host'),
    };
    const [what, attempt] = pickOne(Object.entries(tries), prng) ?? [];
    if (what === undefined || attempt === undefined) return;
    const answer = await this.#caller.insist(attempt);
    this.#caller.trace(() => `${what} ${project}/${named} -> ${answer instanceof ApiError ? answer.code : 'done'}`);
    if (!(answer instanceof ApiError)) this.#fault(`was permitted to ${what} ${project}/${named}`);
    else if (refusals.has(answer.code)) this.#caller.parts.tally.hit('walled-refused');
    else this.#fault(`learned by ${what} of ${project}/${named}: ${answer.code} ${answer.message}`);
  }

  /** As some commit left it: it may be gone already. Most commits are of heartbeats. */
  #someInstanceOfOthers(): Instance | undefined {
    const { commits } = this.#caller.parts;
    for (let tried = 0; tried < commitsTriedMax; tried++)
      for (const { after } of commits[this.#caller.prng.below(Math.max(1, commits.length))]?.events ?? [])
        if (after?.kind === 'instance' && after.metadata.project !== walledProject) return after;
    return undefined;
  }

  #fault(message: string): void {
    this.#caller.parts.onViolation(10, `${this.#caller.name} ${message}`);
  }
}
