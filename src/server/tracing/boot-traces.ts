// Sends the trace of each boot to a collector of OpenTelemetry, while this control plane leads. Traces are for looking: what a collector
// does not take in time is dropped, and no request waits for one.

import type { WebFetch } from '../../base/fetch-json.ts';
import { sleep } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { RecordChange } from '../../core/state/snapshot.ts';
import type { Decider } from '../decide.ts';
import type { OutsidePart, PartReport } from '../outside.ts';
import { bootSpans, type Span } from './boot-spans.ts';
import { otlpTraces } from './otlp.ts';

export interface BootTracesParts {
  readonly decider: Decider;
  readonly fetch: WebFetch;
  /** Of the collector, without `/v1/traces`. */
  readonly url: string;
  readonly version: string;
  readonly log: Logger;
}

/** Spans of some thousand boots: more are dropped until the collector answers. */
const waitingMax = 20_000;
const batchMax = 1_000;
/** Boots that are remembered; one that is forgotten may be sent again, with the same ids. */
const toldMax = 50_000;
const retryMs = 5_000;
const answerMsMax = 10_000;

export class BootTraces implements OutsidePart {
  readonly #parts: BootTracesParts;
  readonly #stopped = new AbortController();
  readonly #unfollow: () => void;
  readonly #waiting: Span[] = [];
  readonly #told = new Set<string>();
  #leading = false;
  #sending: Promise<void> | undefined;
  #trouble: string | undefined;
  #dropped = 0;

  constructor(parts: BootTracesParts) {
    this.#parts = parts;
    this.#unfollow = parts.decider.cache.onChange((change) => {
      if (this.#leading) this.#see(change);
    });
  }

  lead(): void {
    this.#leading = true;
  }

  stepDown(): void {
    this.#leading = false;
  }

  async stop(): Promise<void> {
    this.#unfollow();
    this.#leading = false;
    this.#stopped.abort();
    await this.#sending;
  }

  report(): readonly PartReport[] {
    const trouble = this.#trouble;
    const dropped = this.#dropped === 0 ? '' : `; ${this.#dropped} spans were dropped`;
    return [{ name: 'tracing', ok: trouble === undefined, message: `${trouble ?? 'traces are taken'}${dropped}` }];
  }

  #see({ before, after }: RecordChange): void {
    if (after?.kind !== 'instance' || after.status.guest?.ready !== true) return;
    if (before?.kind === 'instance' && before.status.guest?.ready === true) return;
    const spans = bootSpans(after);
    const root = spans[0];
    // A health check that fails and passes again is no boot.
    if (root === undefined || this.#told.has(root.spanId)) return;
    if (this.#told.size >= toldMax) this.#told.clear();
    this.#told.add(root.spanId);
    if (this.#waiting.length + spans.length > waitingMax) this.#dropped += spans.length;
    else this.#waiting.push(...spans);
    this.#sending ??= this.#send().finally(() => (this.#sending = undefined));
  }

  async #send(): Promise<void> {
    const { signal } = this.#stopped;
    const { decider, log } = this.#parts;
    await Promise.resolve(); // what is seen in the same turn goes together
    while (this.#waiting.length > 0 && !signal.aborted) {
      const batch = this.#waiting.slice(0, batchMax);
      const trouble = await this.#post(batch);
      if (trouble === undefined) {
        this.#waiting.splice(0, batch.length);
      } else if (!signal.aborted) {
        if (this.#trouble === undefined) log.warn('the collector takes no traces; trying again', { why: trouble });
        await sleep(decider.clock, retryMs, signal);
      }
      this.#trouble = trouble;
    }
  }

  /** Why it was not taken. A batch that can never be taken is dropped. */
  async #post(batch: readonly Span[]): Promise<string | undefined> {
    const { url, version, decider } = this.#parts;
    const ends = new AbortController();
    const timer = decider.clock.setTimer(answerMsMax, () => ends.abort());
    try {
      const { status, body } = await this.#parts.fetch(`${url.replace(/\/$/, '')}/v1/traces`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(otlpTraces(batch, version)),
        signal: AbortSignal.any([ends.signal, this.#stopped.signal]),
        redirect: 'manual',
      });
      for await (const _ of body ?? []); // else its connection stays open
      if (status >= 200 && status < 300) return undefined;
      if (status !== 429 && status < 500) {
        this.#dropped += batch.length;
        this.#parts.log.warn('the collector refuses traces; they are dropped', { status, spans: batch.length });
        return undefined;
      }
      return `it answered ${status}`;
    } catch (error) {
      return describeError(error);
    } finally {
      timer.cancel();
    }
  }
}
