// Copies what the containers of one guest write into one file with offsets that never change. No line is copied twice, and
// none is lost, also across restarts of the agent (group-log-file.ts).

import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { createPace, type Pace } from '../../../base/concurrency/pace.ts';
import type { Engine } from './engine.ts';
import type { GroupContainer } from './group-containers.ts';
import { GroupLogFile } from './group-log-file.ts';
import { LogResumption, sinceSecondsOf } from './log-position.ts';

export interface GroupLogOptions {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly log: Logger;
  /** The guest's. */
  readonly directory: string;
  readonly containers: readonly GroupContainer[];
}

const retryMs = 1000;
/** The long-term limit for one guest. The engine keeps what exceeds it, and drops the oldest when that becomes too much. */
const bytesPerSecond = 2 * 1024 * 1024;
const finishMs = 10_000; // reading 8 MiB takes a tenth of a second

export class GroupLog {
  readonly #options: GroupLogOptions;
  readonly #file: GroupLogFile;
  readonly #stopping = new AbortController();
  readonly #listening = new Map<string, Promise<void>>();
  readonly #running = new Set<string>();
  /** A flood of lines must not keep the agent from its other work. */
  readonly #pace: Pace;

  constructor(options: GroupLogOptions) {
    const { clock, directory, containers } = options;
    this.#options = options;
    this.#file = new GroupLogFile({ directory, named: containers.length > 1 });
    this.#pace = createPace({ clock, perSecond: bytesPerSecond, atOnceMax: bytesPerSecond });
  }

  /** Whether a container runs: its output is followed from its start to its end. */
  seen(name: string, isRunning: boolean): void {
    const each = this.#options.containers.find((container) => container.name === name);
    if (each === undefined || this.#stopping.signal.aborted) return;
    if (isRunning) this.#running.add(name);
    else this.#running.delete(name);
    if (!isRunning || this.#listening.has(name)) return;
    const done = this.#listen(each).finally(() => {
      if (this.#listening.get(name) === done) this.#listening.delete(name);
    });
    this.#listening.set(name, done);
  }

  /** Copies the remaining output of a guest that has ended. Never rejects; what cannot be read in time stays with the engine. */
  async finish(): Promise<void> {
    const { clock, log, containers } = this.#options;
    this.#stopping.abort();
    await Promise.all(this.#listening.values());
    const limit = new AbortController();
    const timer = clock.setTimer(finishMs, () => limit.abort());
    try {
      for (const each of containers) await this.#copy(each, { follow: false, signal: limit.signal });
    } catch (error) {
      log.warn('cannot read the last words of a guest', { error: describeError(error) });
    } finally {
      timer.cancel();
      await this.stop().catch((error: unknown) => log.warn('cannot close a log', { error: describeError(error) }));
    }
  }

  /** Stops copying; the next GroupLog of this guest continues from here. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#listening.values());
    await this.#file.close();
  }

  /** Until the container no longer runs, and all that it wrote is in the file. */
  async #listen(each: GroupContainer): Promise<void> {
    const { clock, log } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const over = !this.#running.has(each.name);
      try {
        await this.#copy(each, { follow: !over, signal });
        if (over) return;
      } catch (error) {
        if (!signal.aborted)
          log.debug('cannot read what a container writes; trying again', {
            container: each.container,
            error: describeError(error),
          });
      }
      if (this.#running.has(each.name)) await sleep(clock, retryMs, signal);
    }
  }

  async #copy(
    { name, container }: GroupContainer,
    range: { readonly follow: boolean; readonly signal: AbortSignal },
  ): Promise<void> {
    const known = await this.#file.position(name);
    const resumption = new LogResumption(known);
    const logs = this.#options.engine.logs(container, { ...range, sinceSeconds: sinceSecondsOf(known) });
    for await (const frames of logs) {
      const fresh = resumption.take(frames);
      if (fresh.length > 0) await this.#file.append(name, fresh, resumption.position);
      if (range.follow) await this.#pace.take(fresh.length, this.#stopping.signal);
      if (range.signal.aborted) return;
    }
  }
}
