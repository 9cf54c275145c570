// GroupedLeaders: the top candidates of a shape with the verdicts of neighbour rules included, for large groups that
// refuse many hosts. Only for rules whose verdict on a host depends on the members on that host, so that a change of a
// host updates only that host.

import type { Choice } from './best.ts';
import type { Fleet } from '../fleet.ts';
import { loneDesk } from './desks.ts';
import { Leaders, type Scores } from './leaders.ts';
import type { Slot } from './slot.ts';
import { type GroupRules, judge } from './verdicts.ts';

interface Base extends Scores {
  readonly leaders: Leaders;
}

export class GroupedLeaders {
  /** The shape; up to date whenever it is read. */
  readonly base: Base;
  readonly #fleet: Fleet;
  readonly #leaders: Leaders;
  #rules: GroupRules | null = null;
  #upTo = -1;

  constructor(base: Base, fleet: Fleet, kept?: number) {
    this.base = base;
    this.#fleet = fleet;
    this.#leaders = new Leaders(loneDesk(fleet.capacity), fleet.names, (slot) => this.#verdictOn(slot), kept);
  }

  /**
   * `rules`: the current ones. Their verdict on a host may change only when the host changes, which the log records.
   */
  choose(rules: GroupRules): Choice | null {
    this.#rules = rules;
    this.#catchUp();
    const slot = this.#leaders.best(this.#fleet.length);
    return slot < 0 ? null : { slot, score: this.#verdictOn(slot), fitCount: this.base.leaders.fitCount };
  }

  #catchUp(): void {
    const { log, length } = this.#fleet;
    const known = this.#upTo >= 0 && log.end - this.#upTo <= length;
    const count = known ? log.collect(this.#upTo) : -1;
    for (let i = 0; i < count; i++) {
      const slot = log.changed[i] ?? 0;
      this.#leaders.update(slot, this.#verdictOn(slot));
    }
    if (count < 0) this.#leaders.build(length);
    this.#upTo = log.end;
  }

  #verdictOn(slot: Slot): number {
    const base = this.base.of(slot);
    if (base < 0 || !this.#rules) return base;
    const near = judge(this.#rules, slot);
    return near < 0 ? near : base + near;
  }
}
