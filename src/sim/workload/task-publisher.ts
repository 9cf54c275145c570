// A publisher of requests to /schedule over the broker: valid ones, the same again, and some that are none. Its project may have less room
// than it asks for.

import { sleep } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';
import { placingProject, type TaskRequests } from '../task-requests.ts';
import { answersQueue, type SimBroker } from '../world/broker/sim-broker.ts';
import type { Caller } from './caller.ts';
import { MessageSender } from './message-sender.ts';

export interface TaskPublisherOptions {
  readonly caller: Caller;
  readonly broker: SimBroker;
  readonly requests: TaskRequests;
}

const messagesMax = 30;
const pauseMsMax = 2_000;

export class TaskPublisher {
  readonly #options: TaskPublisherOptions;
  readonly #sender: MessageSender;
  readonly #valid: string[] = [];
  #sent = 0;

  constructor(options: TaskPublisherOptions) {
    this.#options = options;
    const { parts, prng } = options.caller;
    this.#sender = new MessageSender({ parts, prng, broker: options.broker });
  }

  async run(): Promise<void> {
    const { parts, prng } = this.#options.caller;
    if (prng.chance(1, 2)) await this.#limitProject();
    while (!parts.over.aborted && this.#sent < messagesMax) {
      await sleep(
        this.#sender.clock,
        prng.below(Math.min(pauseMsMax, 4 * parts.scenario.betweenCallsMsMean)),
        parts.over,
      );
      if (!parts.over.aborted) await this.#sendOne();
    }
  }

  async #limitProject(): Promise<void> {
    const { caller } = this.#options;
    const body = { metadata: { name: placingProject }, spec: { quota: { VCPU: 2 + caller.prng.below(4) } } };
    await caller.insist((client) => client.create('project', body, { idempotencyKey: `project-${placingProject}` }));
  }

  #sendOne(): Promise<void> {
    const { prng } = this.#options.caller;
    const draw = prng.below(100);
    const known = this.#valid[prng.below(Math.max(1, this.#valid.length))];
    if (draw < 15) return this.#send(drawInvalid(prng), { isValid: false, id: undefined });
    if (draw < 35 && known !== undefined) return this.#send(known, { isValid: true, id: undefined });
    const id = `request-${this.#valid.length + 1}`;
    const body = JSON.stringify({
      task_id: id,
      requested_cpu: 1 + prng.below(3),
      requested_memory: 256 * (1 + prng.below(6)),
      ...(prng.chance(1, 3) ? { reply_to: prng.chance(2, 3) ? answersQueue : 'nowhere' } : {}),
    });
    this.#valid.push(body);
    return this.#send(body, { isValid: true, id });
  }

  async #send(text: string, sent: { readonly isValid: boolean; readonly id: string | undefined }): Promise<void> {
    const { caller, broker, requests } = this.#options;
    const { exchange, routingKey } = broker.settings;
    this.#sent += 1;
    requests.noteSent(text, sent);
    caller.parts.tally.hit(sent.isValid ? 'task-message-valid' : 'task-message-invalid');
    const envelope = { exchange, routingKey, mandatory: true, durable: true, contentType: 'application/json' };
    await this.#sender.send(envelope, text);
    requests.noteConfirmed(text);
    caller.trace(() => `sent ${text}`);
  }
}

function drawInvalid(prng: Prng): string {
  const number = prng.below(1_000_000);
  const faults = [
    `{"task_id":"bad-${number}"`,
    `{"task_id":"bad-${number}","requested_cpu":0,"requested_memory":256}`,
    `{"task_id":"bad-${number}","requested_cpu":1}`,
    `{"task_id":"bad-${number}","requested_cpu":1,"requested_memory":256,"reply_to":"task.schedule"}`,
    `[${number}]`,
  ];
  return faults[prng.below(faults.length)] ?? '';
}
