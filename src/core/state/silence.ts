// Failure detection: how long each host has been silent, as far as this process could have heard it. While the store does not answer, or this
// process stands still, no heartbeat can be read, and silence counts for nothing. While it has more work than it can do, silence counts in part.

export class Silence {
  readonly #seenAtMs = new Map<string, number>();
  /** When the store last answered, and since when it has not. */
  #heardAtMs: number;
  #deafSinceMs: number | undefined;
  #awakeAtMs = 0;
  #stallMsMin = Number.POSITIVE_INFINITY;
  /** Silence up to this time that does not count, or counts in part, has been taken off. */
  #forgivenToMs = Number.NEGATIVE_INFINITY;
  readonly #nowMs: () => number;

  constructor(monotonicNowMs: () => number) {
    this.#nowMs = monotonicNowMs;
    this.#heardAtMs = monotonicNowMs();
  }

  /** A heartbeat of the host was read. */
  noteHeartbeat(host: string): void {
    this.#seenAtMs.set(host, this.#nowMs());
  }

  /** The host has no lease any more. */
  forget(host: string): void {
    this.#seenAtMs.delete(host);
  }

  /** When the host was last heard, later by the silence that does not count; undefined: never. Monotonic. */
  seenAtMs(host: string): number | undefined {
    const seenAtMs = this.#seenAtMs.get(host);
    return seenAtMs === undefined ? undefined : seenAtMs + this.#deafMsSince(seenAtMs);
  }

  /** The store has answered. */
  noteHeard(): void {
    if (this.#deafSinceMs !== undefined) this.#forgive();
    this.#deafSinceMs = undefined;
    this.#heardAtMs = this.#nowMs();
  }

  /** The store has failed: at some time since it last answered. */
  noteDeaf(): void {
    this.#deafSinceMs ??= this.#heardAtMs;
  }

  /** This process runs, and calls this again within `stallMsMin`. When it does not, it stood still, whatever the cause. */
  noteAwake(stallMsMin: number): void {
    if (this.#stalledSinceMs() !== undefined) this.#forgive();
    this.#awakeAtMs = this.#nowMs();
    this.#stallMsMin = stallMsMin;
  }

  /** No control plane judged for a while, so every host is given its full time again. */
  forgiveAll(): void {
    const nowMs = this.#nowMs();
    for (const host of this.#seenAtMs.keys()) this.#seenAtMs.set(host, nowMs);
  }

  /** A `share` of the silence since `sinceMs`, a time in which this process ran, does not count. While the store is away none of it counts. */
  excuse(sinceMs: number, share: number): void {
    if (this.#deafSinceMs !== undefined) return;
    const nowMs = this.#nowMs();
    this.#takeOff((seenAtMs) => share * Math.max(0, nowMs - Math.max(seenAtMs, sinceMs, this.#forgivenToMs)));
  }

  #stalledSinceMs(): number | undefined {
    return this.#nowMs() - this.#awakeAtMs > this.#stallMsMin ? this.#awakeAtMs : undefined;
  }

  /** Takes off for good what has not counted until now. */
  #forgive(): void {
    this.#takeOff((seenAtMs) => this.#deafMsSince(seenAtMs));
  }

  #takeOff(msOf: (seenAtMs: number) => number): void {
    for (const [host, seenAtMs] of this.#seenAtMs) this.#seenAtMs.set(host, seenAtMs + msOf(seenAtMs));
    this.#forgivenToMs = this.#nowMs();
  }

  /** How much of the time since then does not count. */
  #deafMsSince(sinceMs: number): number {
    const nowMs = this.#nowMs();
    const deafSinceMs = Math.min(this.#deafSinceMs ?? nowMs, this.#stalledSinceMs() ?? nowMs);
    return Math.max(0, nowMs - Math.max(sinceMs, deafSinceMs, this.#forgivenToMs));
  }
}
