// Notices the commits of other processes: one watch on the head, restarted whenever it breaks. It is only a hint:
// nothing is lost while it is down, because the log is polled once a second anyway.

import { backoffMs } from '../../base/backoff.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import type { Etcd } from './etcd-client.ts';
import type { WatchResponse } from './etcd-rpc.ts';

export interface HeadWatchOptions {
  readonly etcd: Etcd;
  readonly key: Buffer;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  readonly onAnswer: (answer: WatchResponse) => void;
}

const retryDelay = { delayMsMin: 100, delayMsMax: 2_000 };

export class HeadWatch {
  readonly #options: HeadWatchOptions;
  #stream: { stop(): void } | undefined;
  #timer: Timer | undefined;
  #failures = 0;
  #closed = false;

  constructor(options: HeadWatchOptions) {
    this.#options = options;
    this.#begin();
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#stream?.stop();
  }

  #begin(): void {
    const { etcd, key, clock, prng, log, onAnswer } = this.#options;
    this.#stream = etcd.watch(key, {
      answer: (answer) => {
        this.#failures = 0;
        onAnswer(answer);
      },
      ended: (error) => {
        if (this.#closed) return;
        const retryMs = backoffMs(this.#failures++, retryDelay, prng);
        log.debug('the watch of etcd ended', { cause: describeError(error), retryMs });
        this.#timer = clock.setTimer(retryMs, () => this.#begin(), { background: true });
      },
    });
  }
}
