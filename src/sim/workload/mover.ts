// The mover: an operator who moves instances between hosts, and at times thinks better of it.

import { ApiError } from '../../api/errors.ts';
import { type Caller, pickOne, textOf } from './caller.ts';

export class Mover {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  async run(): Promise<void> {
    const { prng, parts } = this.#caller;
    while (await this.#caller.nextTurn(2 * parts.scenario.betweenCallsMsMean)) {
      const found = await this.#caller.insist((client) => client.list('instance'));
      if (found instanceof ApiError) continue;
      const withVolumes = found.items.filter(
        ({ spec, status }) => spec.volumes !== undefined && status.phase === 'Running',
      );
      // Few have volumes, and of those few run: they are moved more often.
      const instance = pickOne(withVolumes.length > 0 && prng.chance(2, 3) ? withVolumes : found.items, prng);
      if (instance === undefined) continue;
      const { id, project } = instance.metadata;
      if (instance.status.migration !== undefined && prng.chance(1, 4)) await this.#cancel(id, project);
      else await this.#move(id, project);
    }
  }

  async #move(id: string, project: string): Promise<void> {
    const options = this.#caller.prng.chance(1, 2) ? { live: true } : {};
    const shown = await this.#caller.insist((client) => client.migrateInstance(id, { project }, options));
    if (shown instanceof ApiError || shown.plan === undefined) return;
    if (shown.plan.obstacles.length > 0) return;
    const body = { ...options, apply: shown.plan.hash };
    const answer = await this.#caller.insist((client) => client.migrateInstance(id, { project }, body));
    this.#note(`${options.live ? 'live' : 'move'} ${id} to ${shown.plan.to}`, answer);
  }

  async #cancel(id: string, project: string): Promise<void> {
    const answer = await this.#caller.insist((client) => client.cancelMigration(id, { project }));
    this.#note(`stay ${id}`, answer);
  }

  #note(what: string, answer: unknown): void {
    const { parts } = this.#caller;
    this.#caller.trace(() => `${what} -> ${answer instanceof ApiError ? textOf(answer) : 'done'}`);
    if (!(answer instanceof ApiError)) parts.tally.hit(`migration-${what.split(' ', 1)[0]}`);
  }
}
