// Invariant 4, of events that are sent to receivers: every committed event that a webhook asks for arrives at its receiver at least once, with
// one id and one body, in order for each subject; none arrives that no commit made. What a receiver refuses holds back only its subject.

import { matchesType } from '../../../api/news/cloud-event.ts';
import type { Event } from '../../../api/resources/event.ts';
import type { Webhook } from '../../../api/resources/webhook.ts';
import { keys } from '../../../core/state/keys.ts';
import type { WebhookProgress } from '../../../core/state/records.ts';
import type { Commit } from '../../history.ts';
import type { Delivery } from '../../world/false-receivers.ts';
import { pendingMax } from '../../../server/outbox/webhooks/deliveries.ts';
import type { Checker, Facts, ReceiverFacts } from '../checker.ts';

export const deliveriesChecker = (facts: Facts): Checker =>
  facts.receivers === undefined ? { invariant: 4 } : new DeliveriesChecker(facts, facts.receivers);

interface Made {
  readonly revision: number;
  readonly event: Event;
  /** Of the first message with it. */
  body?: string;
}

/** What a receiver should get of one webhook, and what it got. */
interface Followed {
  readonly webhook: Webhook;
  readonly sinceRevision: number;
  /** Not taken yet, by id. */
  readonly open: Map<string, Made>;
  /** Ids. */
  readonly taken: Set<string>;
  /** Somebody asked for another delivery: these may come at any time. */
  readonly asked: Set<string>;
  /** The revision of the newest event that was taken. */
  newest: number;
  /** By subject: the revision of its last event that came for the first time. */
  readonly last: Map<string, number>;
}

class DeliveriesChecker implements Checker {
  readonly invariant = 4;
  readonly #facts: Facts;
  readonly #receivers: ReceiverFacts;
  readonly #made = new Map<string, Made>();
  /** By id of the webhook. */
  readonly #followed = new Map<string, Followed>();

  constructor(facts: Facts, receivers: ReceiverFacts) {
    this.#facts = facts;
    this.#receivers = receivers;
  }

  onCommit({ revision, events }: Commit): string | undefined {
    for (const { before, after } of events) {
      if (after?.kind === 'webhook') this.#follow(after, revision);
      if (after?.kind === 'event' && before === null) this.#note({ revision, event: after });
    }
    for (const { after } of events) {
      const fault = after?.kind === 'webhookProgress' ? this.#faultOfProgress(after) : undefined;
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  onDelivery({ receiver, id, body, isSigned, status }: Delivery): string | undefined {
    const what = `receiver ${receiver} got ${id}`;
    const followed = [...this.#followed.values()].find(({ webhook }) => receiverOf(webhook) === receiver);
    if (followed === undefined) return `${what} of a webhook that no commit made`;
    const made = this.#made.get(id);
    if (made === undefined) return `${what}, an event that no commit made`;
    const fault = faultOfMessage(made, body) ?? (isSigned ? undefined : 'its signature is not one of its secret');
    if (fault !== undefined) return `${what}, and ${fault}`;
    if (!wants(followed, made) && !followed.asked.has(id)) return `${what}, which the webhook does not ask for`;
    return status < 300 ? this.#faultOfOrder(followed, made, what) : undefined;
  }

  *unrest(): Iterable<string> {
    for (const webhook of this.#facts.state.list('webhook')) {
      const { id, name, project } = webhook.metadata;
      const followed = this.#followed.get(id);
      if (followed === undefined || webhook.spec.paused || webhook.status.disabled) continue;
      const key = keys.webhookProgress(project, name);
      const held = this.#heldBack(key);
      if (this.#isFull(key, held)) continue;
      const reached = this.#facts.state.get('webhookProgress', key)?.revision ?? 0;
      if (reached < followed.newest)
        yield `the progress of webhook ${name} stays at ${reached}, and its receiver has taken an event of ${followed.newest}`;
      for (const [
        event,
        {
          revision,
          event: { spec },
        },
      ] of followed.open)
        if (this.#receivers.takes(receiverOf(webhook), spec.subject.id) && !held.has(spec.subject.id))
          yield `event ${event} (${spec.reason} of ${spec.subject.kind} ${spec.subject.name}, revision ${revision}) did not come to the receiver of ${name}`;
    }
  }

  /** Subjects with an event that is tried again later, by every clock. */
  #heldBack(key: string): ReadonlySet<string> {
    const { state, servers } = this.#facts;
    const nowMs = Math.min(...servers().map(({ wallMs }) => wallMs?.() ?? 0));
    const pending = state.get('webhookProgress', key)?.pending ?? [];
    return new Set(pending.flatMap(({ event, nextAtMs = 0 }) => (nextAtMs > nowMs ? [event.partitionkey] : [])));
  }

  /** No further events are read before one of those that wait is tried again. */
  #isFull(key: string, held: ReadonlySet<string>): boolean {
    const pending = this.#facts.state.get('webhookProgress', key)?.pending ?? [];
    const wait = pending.filter(({ nextAtMs }) => nextAtMs !== undefined);
    return pending.length >= pendingMax && wait.length > 0 && wait.every(({ event }) => held.has(event.partitionkey));
  }

  #follow(webhook: Webhook, revision: number): void {
    const { id } = webhook.metadata;
    const known = this.#followed.get(id);
    const asked = known?.asked ?? new Set();
    for (const { event } of webhook.status.asked) asked.add(event);
    this.#followed.set(id, {
      ...(known ?? { sinceRevision: revision, open: new Map(), taken: new Set(), last: new Map(), newest: 0 }),
      ...{ webhook, asked },
    });
  }

  #note(made: Made): void {
    const { id } = made.event.metadata;
    this.#made.set(id, made);
    for (const followed of this.#followed.values()) if (wants(followed, made)) followed.open.set(id, made);
  }

  /** What is written down as behind the sender has come to its receiver, or is written down as pending. */
  #faultOfProgress({ webhookId, name, revision, pending, delivered }: WebhookProgress): string | undefined {
    const followed = this.#followed.get(webhookId);
    if (followed === undefined) return undefined;
    for (const { event, state } of delivered)
      if (state === 'Delivered' && !followed.taken.has(event))
        return `the progress of webhook ${name} has ${event} as delivered, and its receiver never took it`;
    const waiting = new Set(pending.map(({ event }) => event.id));
    for (const [id, made] of followed.open)
      if (made.revision <= revision && !waiting.has(id))
        return `the progress of webhook ${name} is at ${revision}, and event ${id} of ${made.revision} is neither taken nor pending`;
    return undefined;
  }

  #faultOfOrder(followed: Followed, { event, revision }: Made, what: string): string | undefined {
    const { taken, open, asked, last } = followed;
    const { id } = event.metadata;
    open.delete(id);
    if (taken.has(id)) return undefined;
    taken.add(id);
    followed.newest = Math.max(followed.newest, revision);
    const subject = event.spec.subject.id;
    const former = last.get(subject) ?? 0;
    if (asked.has(id)) return undefined;
    if (revision < former) return `${what} of revision ${revision} after one of ${former} of the same subject`;
    last.set(subject, revision);
    return undefined;
  }
}

function receiverOf({ spec }: Webhook): string {
  return new URL(spec.url).hostname;
}

function wants({ webhook: { metadata, spec }, sinceRevision }: Followed, { revision, event }: Made): boolean {
  const { subject, reason } = event.spec;
  if (revision <= sinceRevision) return false;
  if (reason === 'TestAsked') return subject.id === metadata.id;
  if (!spec.allProjects && subject.project !== metadata.project) return false;
  return spec.events.some((pattern) => matchesType(pattern, `berth.v1.${subject.kind}.${reason}`));
}

/** What is wrong with a message about this event. */
function faultOfMessage(made: Made, body: string): string | undefined {
  const { event, revision } = made;
  const known = made.body;
  made.body ??= body;
  if (known !== undefined) return known === body ? undefined : `it was ${known}, and is ${body}`;
  const { id, sequence, data } = JSON.parse(body) as { id: string; sequence: string; data: Event['spec'] }; // the codec: cloud-event.ts
  if (id !== event.metadata.id) return `its body is ${id}`;
  if (sequence !== String(revision)) return `its sequence is ${sequence}, but its revision ${revision}`;
  if (
    data.reason !== event.spec.reason ||
    data.message !== event.spec.message ||
    data.subject.id !== event.spec.subject.id
  )
    return `its body differs from what was committed: ${body}`;
  return undefined;
}
