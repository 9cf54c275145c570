// Watches a guest during its boot: reports the state of its hypervisor when the guest is silent, and gives up when the
// silence lasts. It changes nothing.

import { stat } from 'node:fs/promises';
import { type Clock, sleep } from '../../base/clock.ts';
import { CommandError, exitCodes } from '../../cli/exit-codes.ts';
import { seconds } from '../../cli/options/units.ts';

const lookEveryMs = 500;
const tellEveryMs = 10_000;

export interface SilenceOptions {
  /** The guest's name in messages. */
  readonly name: string;
  readonly consolePath: string;
  /** After this time without a sign of life the boot has failed. */
  readonly silenceMsMax: number;
  /** The state that its hypervisor reports; undefined: it does not run. */
  readonly look: () => Promise<string | undefined>;
  readonly tell: (text: string) => void;
  readonly clock: Clock;
}

/** Signs of life are the guest's output and every change of its status in the control plane. */
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

  /** Called with each status from the control plane. */
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
