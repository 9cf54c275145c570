// When tokens were used last, for "berth token ls": written at most once a minute, for all of them together.

import type { Clock, Timer } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { noteTokenUses } from '../../../core/operations/access/token.ts';
import { type Decider, decideAndCommit } from '../../decide.ts';

const everyMs = 60_000;
/** The first use after a pause is seen soon. */
const soonMs = 1_000;

export class TokenUses {
  readonly #decider: Decider;
  readonly #clock: Clock;
  readonly #log: Logger;
  #uses = new Map<string, { uid: string; atMs: number }>();
  #timer: Timer | undefined;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #stopped = false;

  constructor({ decider, log }: { readonly decider: Decider; readonly log: Logger }) {
    this.#decider = decider;
    this.#clock = decider.clock;
    this.#log = log;
  }

  /** `lastUsedAtMs`: as it is stored. */
  note({ name, uid, lastUsedAtMs }: { name: string; uid: string; lastUsedAtMs: number }): void {
    const atMs = Math.floor(this.#clock.nowMs());
    if (atMs - lastUsedAtMs < everyMs || this.#stopped) return;
    this.#uses.set(name, { uid, atMs });
    const dueInMs = Math.max(soonMs, this.#writtenAtMs + everyMs - this.#clock.monotonicMs());
    this.#timer ??= this.#clock.setTimer(dueInMs, () => void this.write(), { background: true });
  }

  /** Writes what was noted since. Never throws: what cannot be written is noted again at the next use. */
  async write(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const uses = this.#uses;
    if (uses.size === 0) return;
    this.#uses = new Map();
    this.#writtenAtMs = this.#clock.monotonicMs();
    try {
      await decideAndCommit(this.#decider, (snapshot) => noteTokenUses(snapshot, uses));
    } catch (error) {
      this.#log.debug('the last use of tokens was not written', { error: describeError(error) });
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }
}
