// A tenant: creates, stops, suspends, starts, deletes and looks at instances of its own.

import { ApiError } from '../../api/errors.ts';
import type { InstanceSpec, PowerState } from '../../api/resources/instance.ts';
import { keyLabel } from '../intents.ts';
import { drawPlacement } from '../rules.ts';
import { type Caller, type Owned, pickOne, textOf } from './caller.ts';
import { drawInstance, drawLoss } from './draw-instance.ts';

const powerStates = ['running', 'suspended', 'stopped'] as const satisfies readonly PowerState[];

export class Tenant {
  readonly #caller: Caller;
  readonly #project: string;
  readonly #own: Owned[] = [];
  /** Names of deleted instances, for new ones. */
  readonly #freed: string[] = [];
  #keys = 0;
  #gang: { readonly name: string; readonly size: number; missing: number } | undefined;

  constructor(caller: Caller, project: string) {
    this.#caller = caller;
    this.#project = project;
  }

  async run(): Promise<void> {
    const { prng, parts } = this.#caller;
    while (await this.#caller.nextTurn(2 * parts.scenario.betweenCallsMsMean)) {
      const draw = prng.below(100);
      if (draw < 45 && parts.budget.left > 0) await this.#create();
      else if (draw < 65 && this.#own.length > 0) await this.#remove();
      else if (draw < 85) await this.#changePower();
      else if (draw < 90) await this.#look();
    }
    for (let rest = prng.below(this.#own.length + 1); rest > 0 && prng.chance(1, 2); rest--) await this.#remove();
  }

  async #create(): Promise<void> {
    const { prng, name, parts } = this.#caller;
    parts.budget.left -= 1;
    const key = `${name}-${++this.#keys}`;
    const reused = prng.chance(1, 3) ? this.#freed.shift() : undefined;
    const drawn = drawInstance(prng);
    const loss = parts.scenario.losesHosts ? drawLoss(prng, drawn) : {};
    const body = {
      metadata: {
        ...(prng.chance(1, 4) ? {} : { name: reused ?? `${name}-i${this.#keys}` }),
        project: this.#project,
        labels: { [keyLabel]: key, tenant: name },
      },
      spec: { ...drawn, ...loss, placement: drawPlacement(prng, name), ...this.#gangOf(key) },
    };
    const made = await this.#caller.createInstance({
      key,
      body,
      mayRefuse: (code) => code === 'AlreadyExists' && reused !== undefined,
    });
    if (made) this.#own.push(made);
  }

  /** The members of a gang come one after the other; the last may never come. */
  #gangOf(key: string): Pick<InstanceSpec, 'gang'> {
    const { prng } = this.#caller;
    if (this.#gang === undefined && prng.chance(1, 8)) {
      const size = 1 + prng.below(4);
      this.#gang = { name: `gang-${key}`, size, missing: size };
    }
    if (this.#gang === undefined) return {};
    const { name, size } = this.#gang;
    if (--this.#gang.missing === 0) this.#gang = undefined;
    return { gang: { name, size } };
  }

  async #remove(): Promise<void> {
    const [gone] = this.#own.splice(this.#caller.prng.below(this.#own.length), 1);
    if (!gone) return;
    const answer = await this.#caller.deleteInstance(gone.id, { project: this.#project });
    this.#caller.trace(() => `delete ${gone.name} ${gone.id} -> ${textOf(answer)}`);
    this.#freed.push(gone.name);
  }

  async #changePower(): Promise<void> {
    const { prng, parts } = this.#caller;
    const project = this.#project;
    const which = pickOne(this.#own, prng);
    if (!which) return;
    const found = await this.#caller.insist((client) => client.get('instance', which.id, { project }));
    if (found instanceof ApiError) return; // this control plane does not know it yet, or it is gone
    const others = powerStates.filter((each) => each !== found.spec.powerState);
    const powerState = others[prng.below(others.length)] ?? 'running';
    const answer = await this.#caller.insist((client) =>
      client.replace('instance', found.metadata.name, {
        metadata: { project, labels: found.metadata.labels, revision: found.metadata.revision },
        spec: { ...found.spec, powerState },
      }),
    );
    parts.tally.hit(`tenant-${powerState}`);
    this.#caller.trace(() => `${powerState} ${which.name} -> ${textOf(answer)}`);
  }

  async #look(): Promise<void> {
    const project = this.#project;
    const which = pickOne(this.#own, this.#caller.prng);
    await this.#caller.insist((client) => client.list('instance', { limit: 10, project }));
    if (which) await this.#caller.insist((client) => client.explain(which.id, { project }));
  }
}
