// Looks at the states of all zones: periodically while a zone is followed, and on request. One command serves all callers.
// Changes nothing.

import type { Clock, Timer } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { command, type RunCommand } from './commands.ts';
import { parseZoneList, type Zone, type Zones } from './zone-list.ts';

export interface ZoneWatchOptions {
  readonly run: RunCommand;
  readonly clock: Clock;
  readonly log: Logger;
  readonly everyMs: number;
}

interface Follower {
  readonly name: string;
  readonly listener: (zone: Zone | undefined) => void;
  /** The number of the last look that had begun before it followed: the result of that look may be older than what the follower knows. */
  readonly after: number;
}

export class ZoneWatch {
  readonly #options: ZoneWatchOptions;
  readonly #followers = new Set<Follower>();
  #begun = 0;
  #running: Promise<Zones> | undefined;
  #queued: Promise<Zones> | undefined;
  #timer: Timer | undefined;

  constructor(options: ZoneWatchOptions) {
    this.#options = options;
  }

  /** The zones at some time after this call; simultaneous calls share a look. Throws `DriverError`. */
  look(): Promise<Zones> {
    if (this.#running === undefined) return this.#start();
    const start = (): Promise<Zones> => this.#start();
    this.#queued ??= this.#running.then(start, start);
    return this.#queued;
  }

  /** Calls `listener` after every look that begins from now on, until the returned function is called. */
  follow(name: string, listener: (zone: Zone | undefined) => void): () => void {
    const follower = { name, listener, after: this.#begun };
    this.#followers.add(follower);
    if (this.#timer === undefined) this.#again();
    return () => {
      this.#followers.delete(follower);
      if (this.#followers.size === 0) this.#again();
    };
  }

  #start(): Promise<Zones> {
    this.#queued = undefined;
    const looking = this.#lookNow().finally(() => {
      if (this.#running === looking) this.#running = undefined;
    });
    this.#running = looking;
    return looking;
  }

  async #lookNow(): Promise<Zones> {
    const number = ++this.#begun;
    const call = { what: 'cannot look at the zones', program: 'zoneadm', arguments: ['list', '-cp'] };
    const zones = parseZoneList(await command(this.#options.run, call));
    for (const { name, listener, after } of [...this.#followers]) if (number > after) listener(zones.get(name));
    return zones;
  }

  /** Starts the timer of the next look, or stops it when no zone is followed. */
  #again(): void {
    const { clock, log, everyMs } = this.#options;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#followers.size === 0) return;
    const look = (): void => {
      this.look()
        .catch((error: unknown) => log.warn('cannot look at the zones', { error: describeError(error) }))
        .finally(() => this.#again());
    };
    this.#timer = clock.setTimer(everyMs, look, { background: true });
  }
}
