// The lease of this host, which guests need that asked for self-stop: valid for a time after a call to a control plane
// was sent, if it was answered. Once it has ended, only the orders of a new session let such guests run again.
//
// Times are of the clock that goes on while the machine is suspended (CLOCK_BOOTTIME).

import type { Clock, Timer } from '../../base/clock.ts';

export interface LeaseParts {
  readonly clock: Clock;
  readonly bootMs: () => number;
  /** Guests that need the lease are to be stopped now. */
  readonly onEnd: () => void;
  /** The lease is valid until this time. */
  readonly onRenewed?: (untilMs: number) => void;
}

export class Lease {
  readonly #parts: LeaseParts;
  #leaseMs = 0;
  #untilMs = Number.NEGATIVE_INFINITY;
  /** The orders of a session that began with a valid lease are known. */
  #told = false;
  #endedInSession = false;
  #timer: Timer | undefined;

  constructor(parts: LeaseParts) {
    this.#parts = parts;
  }

  /** Guests that need it may run. */
  get held(): boolean {
    this.#look();
    return this.#told;
  }

  /** It ended after the present session had begun: what this session orders may be old. */
  get endedInSession(): boolean {
    this.#look();
    return this.#endedInSession;
  }

  get nowMs(): number {
    return this.#parts.bootMs();
  }

  /** A session whose registration was sent at this time begins. */
  begin(sentMs: number, leaseMs: number): void {
    this.#look();
    this.#endedInSession = false;
    this.#leaseMs = leaseMs;
    this.#extend(sentMs);
  }

  /** A heartbeat that was sent at this time has been answered. */
  renew(sentMs: number): void {
    this.#look();
    this.#extend(sentMs);
  }

  /** The session's orders have come. */
  tell(): void {
    this.#look();
    if (this.#parts.bootMs() < this.#untilMs && !this.#endedInSession) this.#told = true;
  }

  close(): void {
    this.#timer?.cancel();
  }

  #extend(sentMs: number): void {
    this.#untilMs = Math.max(this.#untilMs, sentMs + this.#leaseMs);
    this.#timer?.cancel();
    const leftMs = Math.max(0, this.#untilMs - this.#parts.bootMs());
    this.#timer = this.#parts.clock.setTimer(leftMs, () => this.#look(), { background: true });
    this.#parts.onRenewed?.(this.#untilMs);
  }

  #look(): void {
    if (this.#parts.bootMs() < this.#untilMs || this.#untilMs === Number.NEGATIVE_INFINITY) return;
    this.#endedInSession = true;
    if (!this.#told) return;
    this.#told = false;
    this.#parts.onEnd();
  }
}
