// One run of one guest, as far as the state of its zone tells it: from its boot or adoption until the zone no longer runs. A zone tells
// that it has ended, not why; whether the guest ever spoke is what tells a guest's end from a hypervisor that did not come up.

import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { Run, RunEnd } from '../guest-life/hypervisor.ts';
import { command, type RunCommand } from './commands.ts';
import type { ConsoleRecorder } from './console.ts';
import { mayRun, type Zone } from './zone-list.ts';
import type { ZoneWatch } from './zone-watch.ts';

export interface ZoneRunOptions {
  readonly zone: string;
  readonly run: RunCommand;
  readonly watch: ZoneWatch;
  readonly clock: Clock;
  readonly log: Logger;
  readonly console: ConsoleRecorder;
  /** Whether the guest has said anything since its boot. */
  readonly spoke: () => boolean;
  /** A zone that a guest reboots is down for a moment: an end that nobody asked for is believed after this. */
  readonly confirmMs: number;
  /** How often it is looked at on its own; while a power-off is awaited, more often first. */
  readonly everyMs: number;
  /** Whether the zone was seen to run. */
  readonly seen: boolean;
}

/** zoneadm(8) waits for the last process of the zone; a hypervisor that hangs in the kernel takes longest. */
const haltTimeoutMs = 120_000;

export function superviseZone(options: ZoneRunOptions): Run {
  const { zone, run, watch, clock, log, console, seen } = options;
  const ended = Promise.withResolvers<RunEnd>();
  const over = new AbortController();
  let asked = false;
  let missingSinceMs: number | undefined;

  const finish = (state: string): void => {
    if (over.signal.aborted) return;
    over.abort();
    unfollow();
    const end = (): RunEnd => ({
      cause: options.spoke() ? 'guest-shutdown' : 'other',
      detail: `zone ${zone} is ${state}`,
    });
    console.finish().then(
      () => ended.resolve(end()),
      () => ended.resolve(end()), // its last words are missing: that was logged where it happened
    );
  };
  const lookLater = (delayMs: number): void => {
    const look = (): void => {
      if (!over.signal.aborted) watch.look().catch(sightLost);
    };
    clock.setTimer(delayMs, look, { background: true });
  };
  const sightLost = (error: unknown): void =>
    log.warn('cannot look at the zone of a guest', { zone, error: describeError(error) });
  const onLook = (found: Zone | undefined): void => {
    if (mayRun(found)) {
      missingSinceMs = undefined;
      return;
    }
    const nowMs = clock.monotonicMs();
    missingSinceMs ??= nowMs;
    if (asked || nowMs - missingSinceMs >= options.confirmMs) finish(found?.state ?? 'gone');
    else lookLater(options.confirmMs);
  };
  const unfollow = watch.follow(zone, onLook);
  if (!seen) finish('down at once');

  const awaitPowerOff = async (): Promise<void> => {
    for (let delayMs = options.everyMs / 10; !over.signal.aborted; delayMs = Math.min(2 * delayMs, options.everyMs)) {
      await sleep(clock, delayMs, over.signal);
      if (!over.signal.aborted) await watch.look().catch(sightLost);
    }
  };

  const halt = async (): Promise<void> => {
    const what = `cannot end the guest in zone ${zone}`;
    const words = ['-z', zone, 'halt'];
    try {
      await command(run, { what, program: 'zoneadm', arguments: words, timeoutMs: haltTimeoutMs });
    } catch (error) {
      // It may have gone by itself meanwhile, and then cannot be halted.
      if (mayRun((await watch.look()).get(zone))) throw error;
    }
    const left = (await watch.look()).get(zone);
    if (mayRun(left))
      throw new DriverError('HypervisorFailed', `${what}: it was halted, and still is ${left?.state ?? 'there'}`);
  };
  const endNow = async (): Promise<void> => {
    asked = true;
    if (over.signal.aborted) return void (await ended.promise);
    if (mayRun((await watch.look()).get(zone))) await halt();
    await ended.promise;
  };
  let ending: Promise<void> | undefined;

  return {
    process: undefined,
    connected: Promise.resolve(), // the zone has the uuid in its configuration, which was read before
    ended: ended.promise,
    onTrouble() {}, // nothing tells how a guest fares with its disk
    alive: async () => seen,
    async powerDown() {
      asked = true;
      // bhyve(8), "Signal handling": SIGTERM triggers an ACPI power-off. It is what `zoneadm shutdown` comes down to in this brand; but
      // that one waits for the end as long as the SMF service system/zones says (zoneadm(8)), and our grace may be shorter.
      await command(run, {
        what: `cannot press the power button of zone ${zone}`,
        program: 'pkill',
        arguments: ['-TERM', '-z', zone, 'bhyve'],
      });
      void awaitPowerOff();
    },
    end() {
      ending ??= endNow().finally(() => {
        ending = undefined;
      });
      return ending;
    },
    detach() {
      if (over.signal.aborted) return;
      over.abort();
      unfollow();
      console.abandon();
      ended.resolve({ cause: 'detached', detail: 'the driver has let go of it' });
    },
  };
}

/** The run of a guest that ended while nobody looked. */
export function endedRun(end: RunEnd): Run {
  return {
    process: undefined,
    connected: Promise.resolve(),
    ended: Promise.resolve(end),
    onTrouble() {},
    alive: async () => false,
    powerDown: async () => {},
    end: async () => {},
    detach() {},
  };
}
