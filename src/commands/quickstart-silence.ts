// Waits beside the boot of a guest and never in silence: says how its hypervisor stands when nothing is heard of the guest, and gives up when that
// lasts. It only looks.

import { stat } from 'node:fs/promises';
import { type Clock, sleep } from '../base/clock.ts';
import { CommandError, exitCodes } from '../cli/exit-codes.ts';
import { seconds } from '../cli/options/units.ts';

const lookEveryMs = 500;
const tellEveryMs = 10_000;

export interface SilenceOptions {
  /** Of the guest, for people. */
  readonly name: string;
  readonly consolePath: string;
  /** After so long without a sign of life it is given up. */
  readonly silenceMsMax: number;
  /** How its hypervisor says that it stands; undefined: it does not run. */
  readonly look: () => Promise<string | undefined>;
  readonly tell: (text: string) => void;
  readonly clock: Clock;
}

/** A sign of life is what the guest writes, and whatever changes in what the control plane says of it. */
export class SilenceWatch {
  readonly #options: SilenceOptions;
  #heardMs: number;
  #toldMs = 0;
  #consoleBytes = 0;
  #status = '';

  constructor(options: SilenceOptions) {
    this.#options = options;
    this.#heardMs = options.clock.monotonicMs();
  }

  /** What the control plane says of it, whenever that is said. */
  heardStatus(status: string): void {
    if (status === this.#status) return;
    this.#status = status;
    this.#heard();
  }

  /** Ends when `signal` aborts. Throws `CommandError` when the silence lasts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, silenceMsMax, name, tell } = this.#options;
    for (;;) {
      await sleep(clock, lookEveryMs, signal);
      if (signal.aborted) return;
      await this.#listen();
      const silentMs = clock.monotonicMs() - this.#heardMs;
      if (silentMs >= silenceMsMax) {
        const state = await this.#state();
        throw new CommandError(exitCodes.timedOut, `"${name}" gave no sign of life for ${seconds(silentMs)}: ${state}`);
      }
      if (silentMs < this.#toldMs + tellEveryMs) continue;
      this.#toldMs = silentMs;
      tell(`nothing on the console of ${name} for ${seconds(silentMs)}: ${await this.#state()}`);
    }
  }

  #heard(): void {
    this.#heardMs = this.#options.clock.monotonicMs();
    this.#toldMs = 0;
  }

  async #listen(): Promise<void> {
    const { consolePath } = this.#options;
    const { size } = await stat(consolePath).catch(() => ({ size: 0 })); // not there yet
    if (size === this.#consoleBytes) return;
    this.#consoleBytes = size;
    this.#heard();
  }

  async #state(): Promise<string> {
    const machine = await this.#options.look();
    if (machine === undefined) return this.#status;
    return this.#status === '' ? machine : `${machine} (${this.#status})`;
  }
}
