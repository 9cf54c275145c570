// A tenant of webhooks: creates a few, pauses and resumes them, asks for a test or another delivery, removes one, and enables again those
// that were disabled.

import type { Prng } from '../../base/prng.ts';
import { ApiError } from '../../api/errors.ts';
import type { FalseReceivers, Temper } from '../world/false-receivers.ts';
import { type Caller, pickOne, textOf } from './caller.ts';

export interface NewsTenantOptions {
  readonly caller: Caller;
  readonly receivers: FalseReceivers;
}

interface Own {
  readonly name: string;
  readonly project: string;
}

const webhooksMax = 4;
const tempers: readonly Temper[] = ['healthy', 'healthy', 'flaky', 'flaky', 'flaky', 'leaving', 'choosy', 'dead'];
const patterns: readonly (readonly string[])[] = [
  ['*'],
  ['*'],
  ['berth.v1.instance.*'],
  ['berth.v1.host.*', 'berth.v1.task.*', 'berth.v1.instance.Started'],
];

export class NewsTenant {
  readonly #caller: Caller;
  readonly #receivers: FalseReceivers;
  readonly #own: Own[] = [];
  #made = 0;

  constructor({ caller, receivers }: NewsTenantOptions) {
    this.#caller = caller;
    this.#receivers = receivers;
  }

  async run(): Promise<void> {
    const { prng, parts } = this.#caller;
    await this.#create();
    while (await this.#caller.nextTurn(8 * parts.scenario.betweenCallsMsMean)) {
      const draw = prng.below(100);
      const own = pickOne(this.#own, prng);
      if (draw < 25 && this.#made < webhooksMax) await this.#create();
      else if (own === undefined) continue;
      else if (draw < 40) await this.#test(own);
      else if (draw < 55) await this.#resend(own);
      else if (draw < 90) await this.#replace(own, prng.chance(1, 3));
      else if (draw < 93) await this.#remove(own);
    }
    for (const own of [...this.#own]) if (prng.chance(9, 10)) await this.#replace(own, false);
  }

  async #create(): Promise<void> {
    const { prng, name: caller, parts } = this.#caller;
    this.#made += 1;
    const name = `${caller}-${this.#made}`;
    const { projects } = parts.scenario;
    const project = projects[prng.below(projects.length)] ?? 'default';
    const key = drawKey(prng);
    this.#receivers.open(`${name}.example`, { temper: tempers[prng.below(tempers.length)] ?? 'healthy', key });
    const secret = { metadata: { name, project }, spec: { values: { current: `whsec_${key.toString('base64')}` } } };
    const kept = await this.#caller.insist((client) =>
      client.create('secret', secret, { idempotencyKey: `secret-${name}` }),
    );
    this.#caller.trace(() => `keep the secret of ${name} -> ${textOf(kept)}`);
    const spec = {
      url: `http://${name}.example/`,
      events: [...(patterns[prng.below(patterns.length)] ?? ['*'])],
      secrets: [{ secret: name, key: 'current' }],
      allProjects: prng.chance(1, 2),
    };
    const body = { metadata: { name, project }, spec };
    const answer = await this.#caller.insist((client) => client.create('webhook', body, { idempotencyKey: name }));
    this.#caller.trace(() => `webhook ${name} -> ${textOf(answer)}`);
    if (answer instanceof ApiError)
      return parts.onViolation(3, `${caller} was refused webhook ${name}: ${answer.code} ${answer.message}`);
    this.#own.push({ name, project });
    parts.tally.hit('webhook-created');
  }

  async #test({ name, project }: Own): Promise<void> {
    await this.#caller.insist((client) => client.testWebhook(name, { project }));
  }

  async #resend({ name, project }: Own): Promise<void> {
    const { prng, parts } = this.#caller;
    const known = await this.#caller.insist((client) => client.webhookDeliveries(name, { project }));
    const delivery = known instanceof ApiError ? undefined : pickOne(known.items, prng);
    if (delivery === undefined) return;
    const answer = await this.#caller.insist((client) => client.resendDelivery(name, delivery.event, { project }));
    if (!(answer instanceof ApiError)) parts.tally.hit('webhook-resent');
  }

  /** A webhook that was disabled is enabled by it. */
  async #replace({ name, project }: Own, paused: boolean): Promise<void> {
    const { parts } = this.#caller;
    for (;;) {
      const found = await this.#caller.insist((client) => client.get('webhook', name, { project }));
      if (found instanceof ApiError) return; // this control plane does not know it yet
      const { metadata, spec, status } = found;
      const body = { metadata: { project, revision: metadata.revision }, spec: { ...spec, paused } };
      const answer = await this.#caller.insist((client) => client.replace('webhook', name, body));
      this.#caller.trace(() => `${paused ? 'pause' : 'resume'} ${name} -> ${textOf(answer)}`);
      if (answer instanceof ApiError && answer.code === 'RevisionMismatch') continue;
      if (status.disabled) parts.tally.hit('webhook-enabled');
      return;
    }
  }

  async #remove(own: Own): Promise<void> {
    const { name, project } = own;
    this.#own.splice(this.#own.indexOf(own), 1);
    const answer = await this.#caller.insist((client) => client.delete('webhook', name, { project }));
    this.#caller.trace(() => `remove ${name} -> ${textOf(answer)}`);
  }
}

function drawKey(prng: Prng): Buffer {
  return Buffer.from(Array.from({ length: 32 }, () => prng.below(256)));
}
