// One run of one guest, from its boot or adoption until its zone no longer runs. The zone's state shows that it has ended, not
// why: a guest that wrote to its console has ended by itself, and with a guest that did not, the hypervisor failed.

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
  /** Whether the guest has written anything since its boot. */
  readonly spoke: () => boolean;
  /** A zone that its guest reboots is down for a moment: an end without a request counts after this time. */
  readonly confirmMs: number;
  /** How often the zone is looked at without a request; during a power-off, more often at first. */
  readonly everyMs: number;
  /** Whether the zone was seen to run. */
  readonly seen: boolean;
}

/** zoneadm(8) waits for the last process of the zone; a hypervisor that hangs in the kernel takes longest. */
const haltTimeoutMs = 120_000;

/** An object of plain functions, because the caller spreads it. */
export function superviseZone(options: ZoneRunOptions): Run {
  const run = new ZoneRun(options);
  return {
    process: undefined,
    connected: Promise.resolve(), // the zone has the uuid in its configuration, which was read before
    ended: run.ended,
    onTrouble() {}, // nothing reports the state of a guest's disk
    alive: async () => options.seen,
    powerDown: () => run.powerDown(),
    end: () => run.end(),
    detach: () => run.detach(),
  };
}

class ZoneRun {
  readonly #options: ZoneRunOptions;
  readonly #ended = Promise.withResolvers<RunEnd>();
  readonly #over = new AbortController();
  readonly #unfollow: () => void;
  /** The guest was asked to end, or is being ended. */
  #asked = false;
  #missingSinceMs: number | undefined;
  #ending: Promise<void> | undefined;

  constructor(options: ZoneRunOptions) {
    this.#options = options;
    this.#unfollow = options.watch.follow(options.zone, (found) => this.#onLook(found));
    if (!options.seen) this.#finish('down at once');
  }

  get ended(): Promise<RunEnd> {
    return this.#ended.promise;
  }

  async powerDown(): Promise<void> {
    const { run, zone } = this.#options;
    this.#asked = true;
    // bhyve(8), "Signal handling": SIGTERM triggers an ACPI power-off. `zoneadm shutdown` does the same in this brand; but it
    // waits for the end as long as the SMF service system/zones says (zoneadm(8)), and our grace period may be shorter.
    await command(run, {
      what: `cannot press the power button of zone ${zone}`,
      program: 'pkill',
      arguments: ['-TERM', '-z', zone, 'bhyve'],
    });
    void this.#awaitPowerOff();
  }

  end(): Promise<void> {
    this.#ending ??= this.#endNow().finally(() => {
      this.#ending = undefined;
    });
    return this.#ending;
  }

  detach(): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    this.#unfollow();
    this.#options.console.abandon();
    this.#ended.resolve({ cause: 'detached', detail: 'the driver has let go of it' });
  }

  #onLook(found: Zone | undefined): void {
    const { clock, confirmMs } = this.#options;
    if (mayRun(found)) {
      this.#missingSinceMs = undefined;
      return;
    }
    const nowMs = clock.monotonicMs();
    this.#missingSinceMs ??= nowMs;
    if (this.#asked || nowMs - this.#missingSinceMs >= confirmMs) this.#finish(found?.state ?? 'gone');
    else clock.setTimer(confirmMs, () => void this.#look(), { background: true });
  }

  #finish(state: string): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    this.#unfollow();
    const { spoke, zone, console } = this.#options;
    const end = (): void =>
      this.#ended.resolve({ cause: spoke() ? 'guest-shutdown' : 'other', detail: `zone ${zone} is ${state}` });
    console.finish().then(end, end); // when its last output is missing, the recorder has logged that
  }

  async #look(): Promise<void> {
    const { watch, log, zone } = this.#options;
    if (this.#over.signal.aborted) return;
    await watch
      .look()
      .catch((error: unknown) => log.warn('cannot look at the zone of a guest', { zone, error: describeError(error) }));
  }

  async #awaitPowerOff(): Promise<void> {
    const { clock, everyMs } = this.#options;
    const { signal } = this.#over;
    for (let delayMs = everyMs / 10; !signal.aborted; delayMs = Math.min(2 * delayMs, everyMs)) {
      await sleep(clock, delayMs, signal);
      await this.#look();
    }
  }

  async #endNow(): Promise<void> {
    const { watch, zone } = this.#options;
    this.#asked = true;
    if (this.#over.signal.aborted) return void (await this.ended);
    if (mayRun((await watch.look()).get(zone))) await halt(this.#options);
    await this.ended;
  }
}

async function halt({ run, watch, zone }: Pick<ZoneRunOptions, 'run' | 'watch' | 'zone'>): Promise<void> {
  const what = `cannot end the guest in zone ${zone}`;
  const words = ['-z', zone, 'halt'];
  try {
    await command(run, { what, program: 'zoneadm', arguments: words, timeoutMs: haltTimeoutMs });
  } catch (error) {
    // It may have ended by itself meanwhile, and then cannot be halted.
    if (mayRun((await watch.look()).get(zone))) throw error;
  }
  const left = (await watch.look()).get(zone);
  if (mayRun(left))
    throw new DriverError('HypervisorFailed', `${what}: it was halted, and still is ${left?.state ?? 'there'}`);
}

/** The run of a guest that ended while no agent ran. */
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
