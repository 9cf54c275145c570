// GroupedRanking: a shape's hosts in order with what rules about neighbours say of them already in it, for large groups of which many
// hosts are refused. Only for rules whose verdict on a host hangs on the members there, so that it is mended where a host changed.

import type { Choice } from './best.ts';
import type { Fleet } from './fleet.ts';
import { Ranking, refused } from './ranking.ts';
import type { Slot } from './slot.ts';
import { type GroupRules, judge } from './verdicts.ts';

export class GroupedRanking {
  /** Of the shape; up to date whenever this is asked. */
  readonly base: Ranking;
  readonly #fleet: Fleet;
  readonly #ranking: Ranking;
  #upTo = -1;

  constructor(base: Ranking, fleet: Fleet) {
    this.base = base;
    this.#fleet = fleet;
    this.#ranking = new Ranking(fleet.capacity, fleet.names);
  }

  /** `rules`: as they are now; all that they say of a host may only have changed with the host (the log has it). */
  choose(rules: GroupRules): Choice | null {
    this.#catchUp(rules);
    const slot = this.#ranking.best();
    if (slot < 0) return null;
    return { slot, score: this.#ranking.scores[slot] ?? refused, fitCount: this.base.fitCount };
  }

  #catchUp(rules: GroupRules): void {
    const { log, length } = this.#fleet;
    const ranking = this.#ranking;
    const verdictOn = (slot: Slot): number => {
      const base = this.base.scores[slot] ?? refused;
      if (base < 0) return base;
      const near = judge(rules, slot);
      return near < 0 ? near : base + near;
    };
    const known = this.#upTo >= 0 && log.end - this.#upTo <= length;
    const count = known ? log.collect(this.#upTo) : -1;
    for (let i = 0; i < count; i++) {
      const slot = log.changed[i] ?? 0;
      ranking.set(slot, verdictOn(slot));
    }
    if (count < 0) ranking.build(length, verdictOn);
    this.#upTo = log.end;
  }
}
