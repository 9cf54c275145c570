// The containers of one guest on the engine: inspects them and sends signals to those that run.

import type { GuestCounters } from '../../../api/guests/guest-usage.ts';
import { groupUsage } from './usage/group-usage.ts';
import type { Engine } from './engine.ts';
import type { EngineContainer } from './engine-answers.ts';
import { containerName, labels } from './container-config.ts';
import { runs, type SeenContainer } from './group-state.ts';

export interface GroupContainer {
  readonly name: string;
  /** What the engine calls it. */
  readonly container: string;
}

export class GroupContainers {
  readonly list: readonly GroupContainer[];
  readonly #engine: Engine;
  readonly #instanceId: string;

  constructor(parts: { readonly engine: Engine; readonly instanceId: string; readonly names: readonly string[] }) {
    this.#engine = parts.engine;
    this.#instanceId = parts.instanceId;
    this.list = parts.names.map((name) => ({ name, container: containerName(parts.instanceId, name) }));
  }

  inspect(): Promise<SeenContainer[]> {
    return Promise.all(
      this.list.map(async ({ name, container }) => ({ name, container: await this.#engine.inspect(container) })),
    );
  }

  /** Of those that run. */
  async usage(): Promise<GuestCounters> {
    const all = await Promise.all(this.list.map(({ container }) => this.#engine.stats(container)));
    return groupUsage(all.filter((each) => each !== null));
  }

  /** Containers that have less time to end than their guest, the shortest first. */
  async graces(): Promise<{ readonly name: string; readonly graceMs: number }[]> {
    const seen = await this.inspect();
    return seen
      .flatMap(({ name, container }) => {
        const text = container?.Config.Labels?.[labels.stopGrace];
        return text === undefined ? [] : [{ name, graceMs: Number(text) }];
      })
      .toSorted((a, b) => a.graceMs - b.graceMs);
  }

  async each(verb: 'pause' | 'unpause', names: readonly string[]): Promise<void> {
    for (const name of names) await this.#engine[verb](containerName(this.#instanceId, name));
  }

  /** To all that run, or those of `names`: the signal that each container takes as a request to end, or SIGKILL. */
  async signal(which: 'stop' | 'kill', names?: readonly string[]): Promise<void> {
    const seen = await this.inspect();
    // A paused container would neither receive the signal nor end.
    await this.each(
      'unpause',
      seen.filter(({ container }) => container?.State.Status === 'paused').map(({ name }) => name),
    );
    await Promise.all(
      seen
        .filter((each) => runs(each) && (names === undefined || names.includes(each.name)))
        .map(({ name, container }) =>
          this.#engine.kill(
            containerName(this.#instanceId, name),
            which === 'kill' ? 'SIGKILL' : stopSignal(container),
          ),
        ),
    );
  }
}

/** Docker gives its name, podman its number. */
function stopSignal(container: EngineContainer | null): string {
  const said = container?.Config.StopSignal;
  return said === undefined || said === null || said === '' || said === 0 ? 'SIGTERM' : String(said);
}
