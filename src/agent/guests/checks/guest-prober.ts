// Attempts the checks of one run of one guest, each in its own rhythm and one attempt at a time, as long as the guest runs. What they show is
// counted by tally.ts.

import { type Check, type CheckName, type Checks, checkNames, timesOf } from '../../../api/resources/check.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import type { Prng } from '../../../base/prng.ts';
import type { GuestCommand } from '../../drivers/access.ts';
import type { Driver } from '../../drivers/driver.ts';
import { probe } from './probe.ts';
import type { Slots } from './slots.ts';
import { afterAttempt, dueChecks, firstTally, type KeptTally, type Tally } from './tally.ts';

export interface ProberOptions {
  readonly driver: Driver;
  readonly instanceId: string;
  readonly checks: Checks;
  /** Of this run, from an earlier agent. */
  readonly kept: KeptTally | undefined;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly slots: Slots;
  readonly onChange: () => void;
}

export class GuestProber {
  readonly checks: Checks;
  readonly #options: ProberOptions;
  readonly #over = new AbortController();
  /** One for each check that is attempted. */
  readonly #rounds = new Map<CheckName, Promise<void>>();
  /** Commands that went on after their time: another one is not begun beside them. */
  readonly #left = new Map<CheckName, GuestCommand>();
  #tally: Tally;
  #paused = false;

  constructor(options: ProberOptions) {
    this.#options = options;
    this.checks = options.checks;
    this.#tally = firstTally(options.checks, options.kept);
    this.#begin();
  }

  get tally(): Tally {
    return this.#tally;
  }

  /** A suspended guest answers nothing, and is not blamed for it. */
  setPaused(paused: boolean): void {
    if (this.#paused && !paused) this.#tally = { ...this.#tally, rows: {} };
    this.#paused = paused;
  }

  close(): void {
    this.#over.abort();
  }

  #begin(): void {
    for (const name of dueChecks(this.checks, this.#tally)) {
      const check = this.checks[name];
      if (check === undefined || this.#rounds.has(name)) continue;
      this.#rounds.set(name, this.#round(name, check));
    }
  }

  async #round(name: CheckName, check: Check): Promise<void> {
    const { clock, prng, kept } = this.#options;
    const { signal } = this.#over;
    const { initialDelayMs, periodMs } = timesOf(check);
    // Many guests are found again at once.
    await sleep(clock, kept === undefined ? initialDelayMs : prng.below(periodMs), signal);
    while (!signal.aborted && dueChecks(this.checks, this.#tally).includes(name)) {
      const beganMs = clock.monotonicMs();
      if (!this.#paused) await this.#attempt(name, check);
      await sleep(clock, Math.max(0, beganMs + periodMs - clock.monotonicMs()), signal);
    }
    this.#rounds.delete(name);
  }

  async #attempt(name: CheckName, check: Check): Promise<void> {
    const { driver, instanceId, clock, slots } = this.#options;
    const { signal } = this.#over;
    const { timeoutMs } = timesOf(check);
    if (this.#left.has(name))
      return this.#take(name, { ok: false, message: 'the command of an earlier attempt still runs' });
    await slots.take();
    try {
      if (signal.aborted || this.#paused) return;
      const onLeft = (command: GuestCommand): void => this.#leave(name, command);
      const attempt = await probe(check, { driver, instanceId, clock, timeoutMs, signal, onLeft });
      if (!signal.aborted && !this.#paused) this.#take(name, attempt);
    } finally {
      slots.release();
    }
  }

  #leave(name: CheckName, command: GuestCommand): void {
    if (command.endable !== false) return command.kill();
    this.#left.set(name, command);
    const forget = (): void => void this.#left.delete(name);
    command.exit.then(forget, forget);
  }

  #take(name: CheckName, attempt: Parameters<typeof afterAttempt>[3]): void {
    const before = this.#tally;
    this.#tally = afterAttempt(this.checks, before, name, attempt);
    if (toldOf(before) === toldOf(this.#tally)) return;
    this.#begin();
    this.#options.onChange();
  }
}

const toldOf = ({ started, passing, failing, dead }: Tally): string =>
  JSON.stringify([started, passing, failing, dead?.name]);

/** Equal for checks that are attempted in the same way. */
export const textOfChecks = (checks: Checks): string =>
  JSON.stringify(checkNames.map((name) => [checks[name], checks[name] && timesOf(checks[name])]));
