// Receivers of webhooks, behind the transport that the sender is given: a message arrives late, twice or never, the answer likewise, and each
// receiver has a temper of its own. The receiver decides when a message arrives; the sender hears of it later, if its process lives.

import { createHmac } from 'node:crypto';
import type { Prng } from '../../base/prng.ts';
import type { Post, PostCall, Posted } from '../../server/outbox/webhooks/post.ts';
import type { Tally } from '../batch/tally.ts';
import type { ProcessClock } from './process-clock.ts';
import type { Timeline } from './timeline.ts';

/** In the storm; in the calm all but `dead` and `choosy` take everything. */
export type Temper =
  | 'healthy'
  /** Fails, hangs and is slow. */
  | 'flaky'
  /** Answers 410 for a time. */
  | 'leaving'
  /** Takes nothing. */
  | 'dead'
  /** Refuses the events of some subjects for ever. */
  | 'choosy';

/** One message as its receiver gets it. */
export interface Delivery {
  readonly receiver: string;
  /** Of the event: `Webhook-Id`. */
  readonly id: string;
  readonly body: string;
  /** With the key that the receiver knows. */
  readonly isSigned: boolean;
  readonly status: number;
}

export interface FalseReceiversOptions {
  readonly timeline: Timeline;
  readonly prng: Prng;
  readonly stormy: () => boolean;
  readonly tally: Tally;
  readonly trace: (line: () => string) => void;
  readonly onDelivery: (delivery: Delivery) => void;
}

interface Receiver {
  readonly temper: Temper;
  readonly key: Buffer;
  leftUntilMs: number;
}

/** As in the transport of production. */
const timeoutMs = 20_000;
/** Thousandths, in the storm. */
const rates = { lost: 15, repeated: 15, answerLost: 30, slow: 40 } as const;

export class FalseReceivers {
  readonly #options: FalseReceiversOptions;
  readonly #receivers = new Map<string, Receiver>();

  constructor(options: FalseReceiversOptions) {
    this.#options = options;
  }

  /** From now on it listens. `key`: what signs. */
  open(receiver: string, { temper, key }: { readonly temper: Temper; readonly key: Buffer }): void {
    this.#receivers.set(receiver, { temper, key, leftUntilMs: 0 });
  }

  /** Whether it takes the events of this subject once nothing goes wrong any more. */
  takes(receiver: string, subject: string): boolean {
    const temper = this.#receivers.get(receiver)?.temper;
    return temper !== 'dead' && !(temper === 'choosy' && isDisliked(subject));
  }

  /** Of a process that lives by this clock. */
  postFor(clock: ProcessClock): Post {
    return (call) =>
      new Promise((resolve) => {
        const answer = (posted: Posted): void => {
          timer.cancel();
          resolve(posted);
        };
        const timer = clock.setTimer(timeoutMs, () => answer({ error: `no answer within ${timeoutMs / 1000} s` }));
        call.signal.addEventListener('abort', () => answer({ error: 'the operation was aborted' }), { once: true });
        this.#send(call, (posted) => clock.deliver(this.#delayMs(), () => answer(posted)));
      });
  }

  #send(call: PostCall, answer: (posted: Posted) => void): void {
    const { timeline } = this.#options;
    if (this.#strikes('lost')) return;
    timeline.schedule(this.#delayMs(), () => {
      const posted = this.#take(call);
      if (posted && !this.#strikes('answerLost')) answer(posted);
    });
    if (this.#strikes('repeated')) timeline.schedule(this.#delayMs() + 1_000, () => void this.#take(call));
  }

  /** Undefined: it never answers. */
  #take({ url, headers, body }: PostCall): Posted | undefined {
    const name = new URL(url).hostname;
    const receiver = this.#receivers.get(name);
    if (receiver === undefined) return { error: 'connection refused' };
    const status = this.#statusOf(receiver, body);
    if (typeof status !== 'number') return status === 'hangs' ? undefined : { error: 'connection refused' };
    const id = headers['webhook-id'] ?? '';
    this.#options.trace(() => `receiver ${name} answers ${status} to ${id}`);
    this.#options.onDelivery({ receiver: name, id, body, isSigned: isSigned(receiver.key, headers, body), status });
    if (status < 300) return { status };
    const asked = status === 503 ? { retryAfterMs: 1_000 * (1 + this.#options.prng.below(10)) } : {};
    return { status, error: `the receiver answered ${status}`, ...asked };
  }

  #statusOf(receiver: Receiver, body: string): number | 'hangs' | 'refused' {
    const { prng, stormy, timeline, tally } = this.#options;
    const { temper } = receiver;
    if (temper === 'choosy' && isDisliked(subjectIn(body))) {
      tally.hit('receiver-choosy');
      return 500;
    }
    // In the calm it hangs no more: one that does would be tried again, two at a time, until long after the rest.
    if (temper === 'dead') return stormy() && prng.chance(1, 2) ? 'hangs' : 'refused';
    if (!stormy()) return 200;
    if (temper === 'leaving') {
      if (timeline.nowMs >= receiver.leftUntilMs && prng.chance(1, 40))
        receiver.leftUntilMs = timeline.nowMs + prng.below(10_000);
      if (timeline.nowMs >= receiver.leftUntilMs) return 200;
      tally.hit('receiver-gone');
      return 410;
    }
    if (temper !== 'flaky' || prng.chance(4, 5)) return 200;
    const status = ([500, 503, 302, 'hangs', 'refused'] as const)[prng.below(5)] ?? 500;
    tally.hit(status === 'hangs' ? 'receiver-hung' : 'receiver-failed');
    return status;
  }

  #delayMs(): number {
    const { prng, tally } = this.#options;
    if (!this.#strikes('slow')) return 1 + prng.below(20);
    tally.hit('receiver-slow');
    return prng.below(15_000);
  }

  #strikes(what: keyof typeof rates): boolean {
    return this.#options.stormy() && this.#options.prng.chance(rates[what], 1_000);
  }
}

function isSigned(key: Buffer, headers: PostCall['headers'], body: string): boolean {
  const text = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
  const wanted = `v1,${createHmac('sha256', key).update(text).digest('base64')}`;
  return (headers['webhook-signature'] ?? '').split(' ').includes(wanted);
}

function subjectIn(body: string): string {
  const event: { readonly partitionkey?: unknown } = JSON.parse(body);
  return String(event.partitionkey);
}

function isDisliked(subject: string): boolean {
  return subject.charCodeAt(subject.length - 1) % 5 === 0;
}
