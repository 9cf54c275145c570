// Starts health checks that the engine does not run by itself, until each container had its first good one.

import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { containerName } from './container-config.ts';

const intervalMs = 1000; // as often as systemd's timers may

export interface GroupHealthOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly instanceId: string;
  readonly over: AbortSignal;
  readonly checkHealth: (container: string) => Promise<void>;
  readonly onChecked: () => void;
}

export class GroupHealth {
  readonly #options: GroupHealthOptions;
  #checking: Promise<void> | undefined;

  constructor(options: GroupHealthOptions) {
    this.#options = options;
  }

  /** Checks these containers after a while. Does nothing while a check is under way. */
  checkLater(unchecked: readonly string[]): void {
    const { log, onChecked } = this.#options;
    if (this.#checking !== undefined) return;
    this.#checking = this.#check(unchecked)
      .catch((error: unknown) => log.debug('cannot check the health of a container', { error: describeError(error) }))
      .finally(() => {
        this.#checking = undefined;
        onChecked();
      });
  }

  async #check(unchecked: readonly string[]): Promise<void> {
    const { clock, over, instanceId, checkHealth } = this.#options;
    await sleep(clock, intervalMs, over);
    if (over.aborted) return;
    for (const name of unchecked) await checkHealth(containerName(instanceId, name));
  }
}
