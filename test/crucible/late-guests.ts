// The world of guests told late: each change of a guest waits, as it was, until the log has been read past its time. Who sees it
// then knows every commit that can have led to it. No change may be lost, however short-lived.

import type { FakeGuest, FakeWorld } from '../../src/agent/drivers/fake/world.ts';
import type { Clock } from '../../src/base/clock.ts';
import type { Facts } from '../../src/sim/checkers/checker.ts';

/** When a guest changed. */
export interface Moment {
  readonly monotonicMs: number;
  readonly nowMs: number;
}

interface Change {
  readonly at: Moment;
  readonly host: string;
  readonly instanceId: string;
  /** A copy; undefined: it is no more. */
  readonly guest: FakeGuest | undefined;
}

export class LateGuests {
  /** As the changes that were told have made it. */
  readonly world: Facts['world'];
  readonly #clock: Clock;
  readonly #told = new Map<string, FakeGuest>();
  #untold: Change[] = [];
  #moment: Moment | undefined;
  #changedAtMs: number | undefined;

  constructor(options: { readonly world: FakeWorld; readonly hosts: readonly string[]; readonly clock: Clock }) {
    const { world, hosts, clock } = options;
    this.#clock = clock;
    for (const host of hosts)
      world.onChange(host, (instanceId) => {
        const guest = world.guest(host, instanceId);
        this.#untold.push({ at: this.#now(), host, instanceId, guest: guest && { ...guest } });
      });
    this.world = {
      guests: (host) => [...this.#told.values()].filter((guest) => host === undefined || guest.host === host),
      guest: (host, instanceId) => this.#told.get(`${host} ${instanceId}`),
      doubleStarts: world.doubleStarts,
    };
  }

  /** By the wall clock: when the change was that is being told. */
  get changedAtMs(): number | undefined {
    return this.#changedAtMs;
  }

  /** Tells of each change in its order, up to the first of which it is too early to tell. */
  tell(isTime: (at: Moment) => boolean, onGuest: (host: string, instanceId: string) => void): void {
    const kept = this.#untold.findIndex(({ at }) => !isTime(at));
    for (const { at, host, instanceId, guest } of this.#untold.splice(0, kept < 0 ? this.#untold.length : kept)) {
      const name = `${host} ${instanceId}`;
      if (guest) this.#told.set(name, guest);
      else this.#told.delete(name);
      this.#changedAtMs = at.nowMs;
      onGuest(host, instanceId);
    }
    this.#changedAtMs = undefined;
  }

  /** What happens in one go has one time, as in the simulator: a guest that is taken away ends in that moment. */
  #now(): Moment {
    if (this.#moment === undefined) {
      this.#moment = { monotonicMs: this.#clock.monotonicMs(), nowMs: this.#clock.nowMs() };
      queueMicrotask(() => {
        this.#moment = undefined;
      });
    }
    return this.#moment;
  }
}
