// A publisher of JobRequests: sends valid ones, the same again in another order, other ones under the same id, and some that are none.

import { sleep } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';
import type { JobRequests } from '../job-requests.ts';
import { answersQueue, type SimBroker } from '../world/broker/sim-broker.ts';
import { imageNames } from './draw-instance.ts';
import { MessageSender } from './message-sender.ts';
import type { WorkloadParts } from './parts.ts';

export interface RequestPublisherOptions {
  readonly parts: WorkloadParts;
  readonly prng: Prng;
  readonly broker: SimBroker;
  readonly requests: JobRequests;
}

type Body = Readonly<Record<string, unknown>>;

/** Their jobs must end within the calm, one after the other if need be. */
const jobsMax = 8;
const messagesMax = 30;

export class RequestPublisher {
  readonly #options: RequestPublisherOptions;
  readonly #sender: MessageSender;
  readonly #valid: Body[] = [];
  #sent = 0;

  constructor(options: RequestPublisherOptions) {
    this.#options = options;
    this.#sender = new MessageSender(options);
  }

  async run(): Promise<void> {
    const { parts, prng } = this.#options;
    while (!parts.over.aborted && this.#sent < messagesMax) {
      await sleep(this.#sender.clock, prng.below(4 * parts.scenario.betweenCallsMsMean), parts.over);
      if (parts.over.aborted) return;
      await this.#sendOne();
    }
  }

  #sendOne(): Promise<void> {
    const { prng } = this.#options;
    const known = this.#valid[prng.below(Math.max(1, this.#valid.length))];
    const draw = prng.below(100);
    if (known === undefined || (draw < 45 && this.#valid.length < jobsMax)) return this.#sendNew();
    if (draw < 70) return this.#send('valid', otherOrder(known, prng));
    if (draw < 82) return this.#send('conflicting', { ...known, commit_sha: drawCommit(prng) });
    return this.#send('invalid', drawInvalid(known, prng));
  }

  async #sendNew(): Promise<void> {
    const { prng } = this.#options;
    const body = {
      schema_version: 'jobrequest.v1',
      request_id: `${hex(prng, 8)}-${hex(prng, 4)}-4${hex(prng, 3)}-8${hex(prng, 3)}-${hex(prng, 12)}`,
      source: 'forgejo',
      repo_url: 'http://git.test/app.git',
      commit_sha: drawCommit(prng),
      runs_on: imageNames[prng.below(imageNames.length)] ?? 'tiny',
      submitted_at: '2026-01-01T00:00:00Z',
    };
    this.#valid.push(body);
    await this.#send('valid', body);
  }

  async #send(kind: 'valid' | 'conflicting' | 'invalid', body: Body): Promise<void> {
    const { parts, prng, broker, requests } = this.#options;
    const { exchange, routingKey } = broker.settings;
    this.#sent += 1;
    const text = JSON.stringify(body);
    requests.noteSent(kind, text);
    parts.tally.hit(`request-${kind}`);
    const replyTo = prng.chance(1, 3) ? (prng.chance(2, 3) ? answersQueue : 'nowhere') : undefined;
    const envelope = { exchange, routingKey, mandatory: true, durable: true, contentType: 'application/json' };
    await this.#sender.send({ ...envelope, ...(replyTo === undefined ? {} : { replyTo }) }, text);
    requests.noteConfirmed(text);
    parts.trace(() => `publisher: sent ${kind} ${text}`);
  }
}

function hex(prng: Prng, length: number): string {
  return Array.from({ length }, () => prng.below(16).toString(16)).join('');
}

function drawCommit(prng: Prng): string {
  return hex(prng, 40);
}

function otherOrder(body: Body, prng: Prng): Body {
  const entries = Object.entries(body);
  const turned = prng.chance(1, 2) ? entries.reverse() : [...entries.slice(3), ...entries.slice(0, 3)];
  return { ...Object.fromEntries(turned), submitted_at: `2026-01-01T00:00:0${prng.below(10)}Z`, workflow_job_id: null };
}

function drawInvalid(known: Body, prng: Prng): Body {
  const request_id = `${hex(prng, 8)}-0000-4000-8000-${hex(prng, 12)}`;
  const faults: readonly Body[] = [
    { ...known, request_id, schema_version: 'jobrequest.v9' },
    { ...known, request_id, commit_sha: 'main' },
    { ...known, request_id, runs_on: 'no-such-image' },
    { ...known, request_id, repo_url: 'file:///etc' },
    { request_id },
    { ...known, request_id: 'seven' },
  ];
  return faults[prng.below(faults.length)] ?? {};
}
