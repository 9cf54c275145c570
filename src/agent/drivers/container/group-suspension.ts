// Pauses and resumes all containers of a guest, and keeps them together: when another program changes all of them, that is
// reported; when it changes only some of them, that is undone.

import { DriverError } from '../../host/driver-error.ts';
import type { GroupContainers } from './group-containers.ts';
import type { GroupState } from './group-state.ts';
import type { Looks } from './looks.ts';

export class GroupSuspension {
  readonly #instanceId: string;
  readonly #containers: GroupContainers;
  readonly #looks: Pick<Looks<GroupState>, 'now' | 'soon'>;
  readonly #listeners: ((suspended: boolean) => void)[] = [];
  /** The state that all containers are to have; another program may pause or resume one of several. */
  #suspended: boolean;
  /** They are being paused or resumed one after the other: a mixed state is then not the work of another program. */
  #changing = false;

  constructor(parts: {
    readonly instanceId: string;
    readonly containers: GroupContainers;
    readonly looks: Pick<Looks<GroupState>, 'now' | 'soon'>;
    readonly suspended: boolean;
  }) {
    this.#instanceId = parts.instanceId;
    this.#containers = parts.containers;
    this.#looks = parts.looks;
    this.#suspended = parts.suspended;
  }

  onChange(listener: (suspended: boolean) => void): void {
    this.#listeners.push(listener);
    listener(this.#suspended);
  }

  async keepTogether({ paused, going }: GroupState & { is: 'running' }, stopping: boolean): Promise<void> {
    if (paused.length === 0 || going.length === 0) return this.#report(paused.length > 0);
    if (this.#changing) return;
    // The engine reports the change when it is done.
    if (this.#suspended && !stopping) await this.#containers.each('pause', going);
    else await this.#containers.each('unpause', paused);
  }

  async set(wanted: boolean): Promise<void> {
    const before = await this.#looks.now();
    if (before.is !== 'running')
      throw new DriverError('NotPossible', `the containers of ${this.#instanceId} do not run any more`);
    this.#suspended = wanted;
    const verb = wanted ? 'pause' : 'unpause';
    this.#changing = true;
    try {
      await this.#containers.each(verb, wanted ? before.going : before.paused);
      const after = await this.#looks.now();
      if (after.is === 'running' && (wanted ? after.going : after.paused).length > 0)
        throw new DriverError(
          'NotPossible',
          `the containers of ${this.#instanceId} do not do as they were told: to ${verb}`,
        );
    } catch (error) {
      this.#looks.soon(); // some containers may have changed, and others not
      throw error;
    } finally {
      this.#changing = false;
    }
  }

  #report(seen: boolean): void {
    this.#suspended = seen;
    for (const listener of this.#listeners) listener(seen);
  }
}
