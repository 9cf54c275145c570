// Sends the events of one webhook. Reads them from the cache in order of revision, and writes down how far it has come, so that another
// leader goes on from there: each is delivered at least once, with the same id.

import { type CloudEvent, cloudEventOf, matchesType } from '../../../api/news/cloud-event.ts';
import { gapEvent } from '../../../api/news/gap-event.ts';
import type { Event } from '../../../api/resources/event.ts';
import type { Webhook } from '../../../api/resources/webhook.ts';
import type { Timer } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { testReason } from '../../../core/operations/webhooks/webhook.ts';
import { disableWebhook, writeProgress } from '../../../core/operations/webhooks/webhook-progress.ts';
import { epochOf } from '../../../core/state/cluster-state.ts';
import { kindOfKey, keys } from '../../../core/state/keys.ts';
import { decideAndCommit, type Decider } from '../../decide.ts';
import type { WebhookBacklog, WebhookOutcome } from '../../outside.ts';
import type { EventFeed } from '../event-feed.ts';
import { Deliveries, type Due } from './deliveries.ts';
import { lostUntil } from './lost-events.ts';
import type { Post, Posted } from './post.ts';
import { retryDelayMs } from './retry.ts';
import { signatureOf, signingKey } from './signature.ts';

export interface SenderParts {
  readonly decider: Decider;
  readonly post: Post;
  readonly feed: EventFeed;
  readonly log: Logger;
  readonly version: string;
  /** Counts one attempt. */
  readonly counted: (outcome: WebhookOutcome) => void;
}

/** Progress is written at most this often. */
const writeMs = 1_000;
/** The position alone is written this often, so that what a receiver missed is known after a crash. */
const positionMs = 900_000;
/** A receiver that takes nothing for so long is disabled. */
const failingMsMax = 5 * 86_400_000;
/** And only after this number of failures in a row: a clock that jumps ahead turns a moment into five days. */
const failuresMin = 10;
/** How soon it looks again when not all could be read. */
const behindMs = 100;
/** Events read at a time. */
const readMax = 1_000;

export class WebhookSender {
  readonly #key: string;
  readonly #parts: SenderParts;
  readonly #id: string;
  readonly #deliveries: Deliveries;
  readonly #stopping = new AbortController();
  readonly #underWay = new Set<Promise<void>>();
  #progressRevision: number;
  #positionWrittenMs: number;
  /** There is more to read than was read. */
  #isBehind = false;
  #timer: Timer | undefined;
  #writeTimer: Timer | undefined;
  #writing: Promise<void> | undefined;

  /** `entry`: of the webhook as it is committed. */
  constructor(entry: { readonly key: string; readonly revision: number; readonly value: Webhook }, parts: SenderParts) {
    const { project, name, id } = entry.value.metadata;
    this.#key = entry.key;
    this.#id = id;
    this.#parts = parts;
    const stored = parts.decider.cache.committed('webhookProgress', keys.webhookProgress(project, name));
    const known = stored?.value.webhookId === id ? stored : undefined;
    this.#progressRevision = stored?.revision ?? 0;
    // A record that was only created says by its own revision where the events begin.
    const revision = known?.value.revision || (known ?? entry).revision;
    const readAtMs = known?.value.readAtMs ?? entry.value.metadata.createdAtMs;
    this.#deliveries = new Deliveries({ pending: [], delivered: [], asked: 0, ...known?.value, revision, readAtMs });
    this.#positionWrittenMs = readAtMs;
  }

  get id(): string {
    return this.#id;
  }

  backlog(): WebhookBacklog {
    const { feed, decider } = this.#parts;
    const { waiting, parked, oldestAtMs } = this.#deliveries.backlog();
    const nowMs = decider.clock.nowMs();
    return {
      webhook: this.#key.slice(this.#key.indexOf('/') + 1),
      ...{ waiting, parked, unread: feed.countAfter(this.#deliveries.readUpTo) },
      ageMs: oldestAtMs === undefined ? 0 : Math.max(0, nowMs - oldestAtMs),
    };
  }

  /** Something may be to do: an event, a change of the webhook, an attempt that is due. */
  wake(): void {
    const webhook = this.#webhook();
    if (this.#stopping.signal.aborted || webhook === undefined) return;
    this.#takeAsked(webhook);
    if (!webhook.spec.paused && webhook.status.disabled === undefined) {
      if (this.#deliveries.queued === 0) this.#read(webhook);
      const { clock } = this.#parts.decider;
      for (let due = this.#deliveries.take(clock.nowMs()); due; due = this.#deliveries.take(clock.nowMs()))
        this.#send(webhook, due);
    }
    this.#setTimer();
    this.#writeSoon();
  }

  /** Resolves when nothing is under way and what is known is written down. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#timer?.cancel();
    this.#writeTimer?.cancel();
    await Promise.all(this.#underWay);
    await this.#writing;
    await this.#write();
  }

  #webhook(): Webhook | undefined {
    const webhook = this.#parts.decider.cache.committed('webhook', this.#key)?.value;
    return webhook?.metadata.id === this.#id ? webhook : undefined;
  }

  #read(webhook: Webhook): void {
    const { feed, decider } = this.#parts;
    const { cache } = decider;
    const { readUpTo: after, readAtMs } = this.#deliveries;
    const fleet = epochOf(cache) ?? '';
    const nowMs = decider.clock.nowMs();
    const read = feed.after(after, readMax);
    const { events, more } = read;
    const until = lostUntil(decider, feed, { position: { after, readAtMs }, read });
    if (until !== undefined) this.#deliveries.gap(gapEvent({ after, until }, { fleet, nowMs }));
    const wanted = events.filter((event) => this.#wants(webhook, event)).map((event) => cloudEventOf(event, fleet));
    const last = events.at(-1)?.metadata.revision ?? after;
    const upTo = more ? Math.max(last, until ?? 0) : Math.max(last, cache.revision);
    this.#deliveries.read(wanted, upTo, more ? events.at(-1)?.metadata.createdAtMs : nowMs);
    this.#isBehind = more;
    if (this.#deliveries.readAtMs - this.#positionWrittenMs >= positionMs) this.#deliveries.dirty = true;
  }

  #wants({ metadata, spec }: Webhook, { spec: { subject, reason } }: Event): boolean {
    if (reason === testReason) return subject.id === metadata.id;
    if (!spec.allProjects && subject.project !== metadata.project) return false;
    const type = `berth.v1.${subject.kind}.${reason}`;
    return spec.events.some((pattern) => matchesType(pattern, type)) && this.#hasLabels(spec.labels, subject);
  }

  /** A subject that is gone has none. */
  #hasLabels(wanted: Webhook['spec']['labels'], { kind, name, project }: Event['spec']['subject']): boolean {
    if (wanted === undefined || Object.keys(wanted).length === 0) return true;
    const key = project === '' ? `${kind}s/${name}` : `${kind}s/${project}/${name}`;
    const recordKind = kindOfKey(key);
    const record = recordKind && this.#parts.decider.cache.committed(recordKind, key)?.value;
    const labels = record && 'metadata' in record ? record.metadata.labels : {};
    return Object.entries(wanted).every(([label, value]) => labels[label] === value);
  }

  #takeAsked({ metadata, status }: Webhook): void {
    const { cache } = this.#parts.decider;
    for (const { number, event: id } of status.asked) {
      if (number <= this.#deliveries.asked) continue;
      const kept =
        cache.committed('event', keys.event(metadata.project, id)) ??
        cache.committed('event', keys.event('default', id));
      const event = kept && { ...kept.value, metadata: { ...kept.value.metadata, revision: kept.revision } };
      this.#deliveries.again(number, id, event && cloudEventOf(event, epochOf(cache) ?? ''));
    }
  }

  #send(webhook: Webhook, due: Due): void {
    const sending = this.#attempt(webhook, due).finally(() => {
      this.#underWay.delete(sending);
      this.wake();
    });
    this.#underWay.add(sending);
  }

  async #attempt(webhook: Webhook, due: Due): Promise<void> {
    const { decider, log, counted } = this.#parts;
    const posted = await this.#post(webhook, due.event);
    const nowMs = decider.clock.nowMs();
    if (this.#stopping.signal.aborted && posted.status === undefined) return this.#deliveries.giveBack(due);
    if (posted.error === undefined) {
      counted('delivered');
      return this.#deliveries.delivered(due, posted, nowMs);
    }
    const delayMs = retryDelayMs(due.attempts + 1, decider.prng, posted.retryAfterMs);
    counted(delayMs === undefined ? 'parked' : 'failed');
    this.#deliveries.failed(due, posted, { nowMs, delayMs });
    const { project, name } = webhook.metadata;
    log.debug('a webhook was not delivered', { webhook: `${project}/${name}`, event: due.event.id, why: posted.error });
    const since = this.#deliveries.failingSinceMs ?? nowMs;
    if (posted.status === 410) await this.#disable('the receiver answered 410: it is gone');
    else if (nowMs - since > failingMsMax && this.#deliveries.failures >= failuresMin)
      await this.#disable(`every attempt has failed for 5 days: ${posted.error}`);
  }

  async #post(webhook: Webhook, event: CloudEvent): Promise<Posted> {
    const { decider, post, version } = this.#parts;
    const { project } = webhook.metadata;
    const signing = webhook.spec.secrets.flatMap(({ secret, key }) => {
      const text = decider.cache.committed('secretValues', keys.secretValues(project, secret))?.value.values[key];
      return (text === undefined ? undefined : signingKey(text)) ?? [];
    });
    if (signing.length === 0) return { error: 'none of its secrets is one: whsec_ and 24 to 64 bytes in base64' };
    const body = JSON.stringify(event);
    const timestamp = Math.floor(decider.clock.nowMs() / 1_000);
    const signature = signatureOf(signing, { id: event.id, timestamp, body });
    return post({
      url: webhook.spec.url,
      headers: {
        'content-type': 'application/cloudevents+json; charset=utf-8',
        'user-agent': `berth/${version}`,
        'webhook-id': event.id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': signature,
        ...(event.traceparent === undefined ? {} : { traceparent: event.traceparent }),
      },
      body,
      signal: this.#stopping.signal,
    });
  }

  async #disable(reason: string): Promise<void> {
    const [key, id] = [this.#key, this.#id];
    await decideAndCommit(this.#parts.decider, (snapshot, ctx) =>
      disableWebhook(snapshot, { key, id, reason }, ctx),
    ).catch((error: unknown) =>
      this.#parts.log.warn('a webhook cannot be disabled', { key, why: describeError(error) }),
    );
  }

  #setTimer(): void {
    this.#timer?.cancel();
    const { clock } = this.#parts.decider;
    const nextAtMs = this.#isBehind ? clock.nowMs() + behindMs : this.#deliveries.nextAtMs(clock.nowMs());
    if (nextAtMs === undefined) return;
    const delayMs = Math.min(Math.max(nextAtMs - clock.nowMs(), 10), 3_600_000);
    this.#timer = clock.setTimer(delayMs, () => this.wake(), { background: true });
  }

  #writeSoon(): void {
    if (!this.#deliveries.dirty || this.#writeTimer !== undefined || this.#stopping.signal.aborted) return;
    const write = (): void => {
      this.#writeTimer = undefined;
      this.#writing = this.#write();
    };
    this.#writeTimer = this.#parts.decider.clock.setTimer(writeMs, write, { background: true });
  }

  async #write(): Promise<void> {
    const webhook = this.#webhook();
    if (!this.#deliveries.dirty || webhook === undefined) return;
    this.#deliveries.dirty = false;
    const { project, name } = webhook.metadata;
    const progress = {
      kind: 'webhookProgress' as const,
      ...{ project, name, webhookId: this.#id },
      ...this.#deliveries.progress(),
    };
    this.#positionWrittenMs = progress.readAtMs ?? 0;
    try {
      const { decision, revision } = await decideAndCommit(this.#parts.decider, (snapshot) =>
        writeProgress(snapshot, { progress, ifRevision: this.#progressRevision }),
      );
      if (decision.written) this.#progressRevision = revision;
      else this.#writeOver(decision.revision);
    } catch (error) {
      this.#deliveries.dirty = true;
      this.#parts.log.warn('the progress of a webhook cannot be written', {
        key: this.#key,
        why: describeError(error),
      });
      this.#writeSoon();
    }
  }

  /**
   * A sender that led before this one wrote after this one had read, or a write was made and its answer lost. What this one knows counts: at
   * worst an event is delivered twice.
   */
  #writeOver(revision: number): void {
    if (this.#stopping.signal.aborted) return;
    this.#progressRevision = revision;
    this.#deliveries.dirty = true;
    this.#writeSoon();
  }
}
