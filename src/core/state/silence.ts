// Failure detection: how long each host has been silent, as far as this process could have read its heartbeats. Silence
// does not count while the store is unreachable or this process is suspended, and counts in part while the process is
// overloaded.

export class Silence {
  readonly #seenAtMs = new Map<string, number>();
  /** Of hosts that lost their lease: since when, plus the silence that does not count. */
  readonly #lostAtMs = new Map<string, number>();
  /** Hosts that lost their lease before this process could know count from here. */
  #countsFromMs: number;
  /** When the store last answered, and since when it has failed. */
  #heardAtMs: number;
  #deafSinceMs: number | undefined;
  #awakeAtMs = 0;
  #stallMsMin = Number.POSITIVE_INFINITY;
  /** Silence before this time is already discounted. */
  #forgivenToMs = Number.NEGATIVE_INFINITY;
  readonly #nowMs: () => number;

  constructor(monotonicNowMs: () => number) {
    this.#nowMs = monotonicNowMs;
    this.#heardAtMs = monotonicNowMs();
    this.#countsFromMs = this.#heardAtMs;
  }

  /** A heartbeat of the host was read. */
  noteHeartbeat(host: string): void {
    this.#seenAtMs.set(host, this.#nowMs());
    this.#lostAtMs.delete(host);
  }

  /** The host no longer has a lease. */
  forget(host: string): void {
    this.#seenAtMs.delete(host);
    this.#lostAtMs.set(host, this.#nowMs());
  }

  /** Since when the host has no lease, on the monotonic clock, plus the silence that does not count. */
  lostAtMs(host: string): number {
    const lostAtMs = this.#lostAtMs.get(host) ?? this.#countsFromMs;
    return lostAtMs + this.#deafMsSince(lostAtMs);
  }

  /** The monotonic time of the host's last heartbeat, plus the silence that does not count; undefined: never. */
  seenAtMs(host: string): number | undefined {
    const seenAtMs = this.#seenAtMs.get(host);
    return seenAtMs === undefined ? undefined : seenAtMs + this.#deafMsSince(seenAtMs);
  }

  /** The store answered. */
  noteHeard(): void {
    if (this.#deafSinceMs !== undefined) this.#forgive();
    this.#deafSinceMs = undefined;
    this.#heardAtMs = this.#nowMs();
  }

  /** The store failed, at an unknown time since its last answer. */
  noteDeaf(): void {
    this.#deafSinceMs ??= this.#heardAtMs;
  }

  /**
   * This process runs, and calls this again within `stallMsMin`. A longer gap means that it was suspended, whatever the
   * cause.
   */
  noteAwake(stallMsMin: number): void {
    if (this.#stalledSinceMs() !== undefined) this.#forgive();
    this.#awakeAtMs = this.#nowMs();
    this.#stallMsMin = stallMsMin;
  }

  /** No control plane detected failures for a while, so every host starts again with its full time. */
  forgiveAll(): void {
    const nowMs = this.#nowMs();
    for (const host of this.#seenAtMs.keys()) this.#seenAtMs.set(host, nowMs);
    this.#lostAtMs.clear();
    this.#countsFromMs = nowMs;
  }

  /**
   * Discounts a `share` of the silence since `sinceMs`, a time in which this process ran. While the store is
   * unreachable all of it is discounted.
   */
  excuse(sinceMs: number, share: number): void {
    if (this.#deafSinceMs !== undefined) return;
    const nowMs = this.#nowMs();
    this.#takeOff((seenAtMs) => share * Math.max(0, nowMs - Math.max(seenAtMs, sinceMs, this.#forgivenToMs)));
  }

  #stalledSinceMs(): number | undefined {
    return this.#nowMs() - this.#awakeAtMs > this.#stallMsMin ? this.#awakeAtMs : undefined;
  }

  /** Applies the current discount permanently. */
  #forgive(): void {
    this.#takeOff((seenAtMs) => this.#deafMsSince(seenAtMs));
  }

  #takeOff(msOf: (seenAtMs: number) => number): void {
    for (const times of [this.#seenAtMs, this.#lostAtMs])
      for (const [host, atMs] of times) times.set(host, atMs + msOf(atMs));
    this.#countsFromMs += msOf(this.#countsFromMs);
    this.#forgivenToMs = this.#nowMs();
  }

  /** How much of the time since then does not count. */
  #deafMsSince(sinceMs: number): number {
    const nowMs = this.#nowMs();
    const deafSinceMs = Math.min(this.#deafSinceMs ?? nowMs, this.#stalledSinceMs() ?? nowMs);
    return Math.max(0, nowMs - Math.max(sinceMs, deafSinceMs, this.#forgivenToMs));
  }
}
