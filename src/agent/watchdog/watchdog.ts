// The watchdog device of this machine (/dev/watchdog): it resets the machine when nothing feeds it. A small process of
// its own feeds it as long as the lease lasts, or no guest is left that needs the lease. That process outlives the
// agent: a frozen or dead agent must not keep such guests running.

import { spawn } from 'node:child_process';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { type Clock, sleep } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { Watchdog } from '../session/agent-options.ts';

export interface WatchdogOptions {
  readonly device: string;
  /** Holds the orders of its process, and who that is. */
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Default: that of Linux. */
  readonly systemPath?: string;
}

/** Feeds each second. `$1`: the device; `$2`: a file with the second until which to feed, and whether guests are left. */
const script = `exec 3>"$1" || exit 1
while :; do
  until=0; left=1
  read -r until left < "$2"
  read -r up rest < /proc/uptime
  if [ "$left" = off ]; then printf V >&3; exit 0; fi
  if [ "\${up%.*}" -lt "$until" ] || [ "$left" = 0 ]; then printf . >&3; fi
  sleep 1
done`;

/** The device is left this long to feed after the end of the lease, in which the agent stops the guests. */
const lateS = 2;
const lookMs = 1_000;

export class DeviceWatchdog implements Watchdog {
  readonly #options: WatchdogOptions;
  #untilMs = 0;
  #left: () => boolean = () => true;
  #written = '';
  #closed = new AbortController();
  #work: Promise<void> | undefined;

  constructor(options: WatchdogOptions) {
    this.#options = options;
  }

  /** How long the device waits; undefined: it cannot be found out, so nothing may rely on it. */
  async timeoutMs(): Promise<number | undefined> {
    const { device, systemPath = '/sys/class/watchdog' } = this.#options;
    const name = basename(device) === 'watchdog' ? 'watchdog0' : basename(device);
    const text = await readFile(join(systemPath, name, 'timeout'), 'utf8').catch(() => '');
    const seconds = Number.parseInt(text, 10);
    return Number.isInteger(seconds) && seconds > 0 ? seconds * 1_000 : undefined;
  }

  /** Arms the device: from now on the machine is reset when nothing feeds it. */
  async start(): Promise<void> {
    await this.#write();
    if (!(await this.#runs())) await this.#launch();
    this.#work = this.#follow();
  }

  renewed(untilMs: number): void {
    this.#untilMs = untilMs;
  }

  watch(left: () => boolean): void {
    this.#left = left;
  }

  /** Guests that need the lease keep the device armed: when they are not stopped in time, the machine is reset. */
  async close(): Promise<void> {
    this.#closed.abort();
    await this.#work;
    await this.#write(this.#left() ? undefined : 'off');
  }

  async #follow(): Promise<void> {
    const { clock, log } = this.#options;
    while (!this.#closed.signal.aborted) {
      await this.#write().catch((error: unknown) =>
        log.error('cannot tell the watchdog of the lease: this machine will be reset when the lease ends', {
          error: describeError(error),
        }),
      );
      await sleep(clock, lookMs, this.#closed.signal);
    }
  }

  async #write(last?: 'off'): Promise<void> {
    const order = `${Math.floor(this.#untilMs / 1_000) + lateS} ${last ?? Number(this.#left())}\n`;
    if (order === this.#written) return;
    const path = join(this.#options.directory, 'watchdog');
    await writeFile(`${path}.new`, order);
    await rename(`${path}.new`, path);
    this.#written = order;
  }

  /** An earlier agent's process goes on with the orders of this one. */
  async #runs(): Promise<boolean> {
    const pid = await readFile(join(this.#options.directory, 'watchdog.pid'), 'utf8').catch(() => '');
    if (!/^\d+$/.test(pid)) return false;
    const words = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    return words.includes('berth-watchdog');
  }

  async #launch(): Promise<void> {
    const { device, directory } = this.#options;
    const words = ['-c', script, 'berth-watchdog', device, join(directory, 'watchdog')];
    const child = spawn('/bin/sh', words, { detached: true, stdio: 'ignore' });
    await new Promise((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    child.unref();
    await writeFile(join(directory, 'watchdog.pid'), String(child.pid));
  }
}
