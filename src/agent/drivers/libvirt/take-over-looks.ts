// Repeated looks at a domain after each new connection to libvirt. After its own start, libvirt takes over its domains, and reports no end of a
// domain that it loses meanwhile.

import { type Clock, sleep } from '../../../base/clock.ts';

const delayMsMin = 500;
/** The delays double, so all of them take twice this long: libvirt tries for 30 s to reach a QEMU whose process still exists. */
const delayMsMax = 32_000;

export class TakeOverLooks {
  readonly #clock: Clock;
  readonly #look: () => void;
  readonly #signal: AbortSignal;
  #current = new AbortController();

  constructor(options: { readonly clock: Clock; readonly look: () => void; readonly signal: AbortSignal }) {
    this.#clock = options.clock;
    this.#look = options.look;
    this.#signal = options.signal;
  }

  /** Begins at once and with short delays again. */
  begin(): void {
    this.#current.abort();
    this.#current = new AbortController();
    void this.#repeat(AbortSignal.any([this.#current.signal, this.#signal]));
  }

  async #repeat(signal: AbortSignal): Promise<void> {
    for (let delayMs = 0; delayMs <= delayMsMax && !signal.aborted; delayMs = 2 * delayMs || delayMsMin) {
      await sleep(this.#clock, delayMs, signal);
      if (!signal.aborted) this.#look();
    }
  }
}
