// Looks at the states of all zones: now and then while anyone follows one, and whenever asked. One command serves all. Changes nothing.

import type { Clock, Timer } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { command, type RunCommand } from './commands.ts';
import { parseZoneList, type Zone, type Zones } from './zone-list.ts';

export interface ZoneWatch {
  /** What there is after this call; calls at the same time share a look. Throws `DriverError`. */
  look(): Promise<Zones>;
  /** Tells of `name` after every look that begins from now on, until the answer is called. */
  follow(name: string, listener: (zone: Zone | undefined) => void): () => void;
}

export function createZoneWatch({
  run,
  clock,
  log,
  everyMs,
}: {
  readonly run: RunCommand;
  readonly clock: Clock;
  readonly log: Logger;
  readonly everyMs: number;
}): ZoneWatch {
  interface Follower {
    readonly name: string;
    readonly listener: (zone: Zone | undefined) => void;
    /** The last look that had begun before it followed: what that one saw may be older than what the follower knows. */
    readonly after: number;
  }
  const followers = new Set<Follower>();
  let begun = 0;
  let running: Promise<Zones> | undefined;
  let queued: Promise<Zones> | undefined;
  let timer: Timer | undefined;

  const lookNow = async (): Promise<Zones> => {
    const number = ++begun;
    const zones = parseZoneList(
      await command(run, { what: 'cannot look at the zones', program: 'zoneadm', arguments: ['list', '-cp'] }),
    );
    for (const { name, listener, after } of [...followers]) if (number > after) listener(zones.get(name));
    return zones;
  };
  const start = (): Promise<Zones> => {
    queued = undefined;
    const looking = lookNow().finally(() => {
      if (running === looking) running = undefined;
    });
    running = looking;
    return looking;
  };
  const look = (): Promise<Zones> => {
    if (running === undefined) return start();
    queued ??= running.then(start, start);
    return queued;
  };
  const again = (): void => {
    timer?.cancel();
    timer = undefined;
    if (followers.size === 0) return;
    timer = clock.setTimer(
      everyMs,
      () => {
        look()
          .catch((error: unknown) => log.warn('cannot look at the zones', { error: describeError(error) }))
          .finally(again);
      },
      { background: true },
    );
  };

  return {
    look,
    follow(name, listener) {
      const follower = { name, listener, after: begun };
      followers.add(follower);
      if (timer === undefined) again();
      return () => {
        followers.delete(follower);
        if (followers.size === 0) again();
      };
    },
  };
}
