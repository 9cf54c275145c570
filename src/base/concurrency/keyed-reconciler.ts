// Brings what each key stands for to the wanted state: one key never twice at a time, step by step until a step has nothing left to
// do. A key that fails is tried again after a growing pause. It does not know what the keys name, and it never decides what a step does.

import { backoffMs } from '../backoff.ts';
import type { Clock } from '../clock.ts';
import type { Prng } from '../prng.ts';
import { startWorkers, type Workers } from './workers.ts';

/** `rest`: nothing can be done now. `go-on`: compare the key with the wanted state again. */
export type Step = 'rest' | 'go-on';

export interface KeyedReconcilerOptions<Key> {
  readonly clock: Clock;
  readonly prng: Prng;
  /** How many keys at most are worked on at the same time. */
  readonly workersMax: number;
  /** More steps than this in a row without a rest count as a failure. */
  readonly stepsMax: number;
  /** Why that many steps may not be enough, for the error's message. */
  readonly stuck?: string;
  /** Compares one key with its wanted state and takes one step. Throws when the step failed. */
  readonly step: (key: Key) => Promise<Step>;
  /** Called when the steps of a key ended without a failure. Must not throw. */
  readonly rested: (key: Key) => void;
  /** Called before the pause that precedes the next attempt. Must not throw. */
  readonly retrying: (key: Key, error: unknown, delayMs: number) => void;
}

const retry = { delayMsMin: 1000, delayMsMax: 60_000 };

export class KeyedReconciler<Key> {
  readonly #options: KeyedReconcilerOptions<Key>;
  readonly #workers: Workers<Key>;
  /** How often in a row each key has failed. */
  readonly #attempts = new Map<Key, number>();
  #closed = false;

  constructor(options: KeyedReconcilerOptions<Key>) {
    this.#options = options;
    this.#workers = startWorkers<Key>({
      clock: options.clock,
      concurrency: options.workersMax,
      work: (key) => this.#work(key),
      failed: (key, error) => this.#retry(key, error),
    });
  }

  /** True once `close` was called: steps under way end as soon as they can. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Work on the key begins in a later turn, never inside this call. */
  add(key: Key): void {
    this.#workers.add(key);
  }

  addAfter(key: Key, delayMs: number): void {
    this.#workers.addAfter(key, delayMs);
  }

  /** Begins no further step, so that the caller can cut short those under way before it awaits `close`. */
  stop(): void {
    this.#closed = true;
  }

  /** Resolves when the steps under way have ended. */
  async close(): Promise<void> {
    this.stop();
    await this.#workers.close();
  }

  async #work(key: Key): Promise<void> {
    await this.#takeSteps(key);
    this.#attempts.delete(key);
    this.#options.rested(key);
  }

  async #takeSteps(key: Key): Promise<void> {
    const { step, stepsMax, stuck } = this.#options;
    for (let taken = 0; taken < stepsMax; taken++) {
      if (this.#closed) return;
      if ((await step(key)) === 'rest') return;
    }
    const because = stuck === undefined ? '' : `; ${stuck}`;
    throw new Error(`after ${stepsMax} steps it is still not what is wanted${because}`);
  }

  #retry(key: Key, error: unknown): void {
    if (this.#closed) return;
    const attempt = this.#attempts.get(key) ?? 0;
    this.#attempts.set(key, attempt + 1);
    const delayMs = backoffMs(attempt, retry, this.#options.prng);
    this.#options.retrying(key, error, delayMs);
    this.#workers.addAfter(key, delayMs);
  }
}
