// Choosing among hosts where rules look at neighbours: down the leaders until no later host can be better. Where the best hosts are
// refused one after the other, by domain: the best of each zone or rack; else by a look at all. Its answer is always that of a look at all.

import { Best, type Choice } from './best.ts';
import type { DomainRanking } from './domain-ranking.ts';
import type { Fleet } from '../fleet.ts';
import type { GroupedLeaders } from './grouped-leaders.ts';
import type { Leaders, Scores } from './leaders.ts';
import type { Slot } from './slot.ts';
import { type GroupRules, judge, refused } from './verdicts.ts';

/** How far hosts are looked at one by one, before something else is tried. */
export interface WalkLimits {
  /** How many leaders are kept; the usual number when it is not said. */
  readonly leaders?: number;
  /** Before the best of each domain are looked at instead, whose order costs much to keep where it is seldom asked for. */
  readonly few: number;
  /** Before all hosts are: a step costs as much as some thirty of a plain pass, so no more than twice what the better way does. */
  most(hosts: number): number;
}

export const walkLimits: WalkLimits = { few: 64, most: (hosts) => Math.max(64, hosts >> 5) };

interface Ranked {
  readonly scores: Scores;
  readonly leaders: Leaders;
  byDomain(topologyKey: string): DomainRanking;
  /** With what these rules say of each host in it; kept. */
  grouped(): GroupedLeaders;
}

export function chooseAmong(shape: Ranked, rules: GroupRules, fleet: Fleet, limits: WalkLimits): Choice | null {
  const { scores, leaders } = shape;
  const search = new Search(scores, rules, fleet);
  for (const slot of rules.shortlist ?? []) search.look(slot);
  if (rules.scoreMaxElsewhere === null) return search.best.choice(leaders.fitCount);
  const { uniform } = rules;
  const most = uniform ? limits.few : limits.most(fleet.length);
  if (search.walk(leaders.inOrder(fleet.length), most, leaders.areAll)) return search.best.choice(leaders.fitCount);
  if (rules.perHost) return shape.grouped().choose(rules);
  if (uniform) byDomain(search, shape.byDomain(uniform.by), uniform, limits.most(fleet.length));
  else for (let slot = 0; slot < fleet.length; slot++) search.lookIfBetter(slot);
  return search.best.choice(leaders.fitCount);
}

function byDomain(
  search: Search,
  domains: DomainRanking,
  uniform: NonNullable<GroupRules['uniform']>,
  most: number,
): void {
  for (let domain = 0; domain < domains.count; domain++) {
    const first = domains.best(domain);
    if (first < 0 || !search.mayBeBetter(first)) continue;
    if (uniform.only) search.look(first);
    // Whatever refuses all of the domain need not be asked of each.
    else if (judge(uniform.rules, first) >= 0 && !search.walk(domains.inOrder(domain), most, true))
      for (const slot of domains.inOrder(domain)) search.lookIfBetter(slot);
  }
}

class Search {
  readonly best: Best;
  #bestBase = refused;
  readonly #scores: Scores;
  readonly #rules: GroupRules;
  readonly #names: readonly string[];
  readonly #scoreMax: number;

  constructor(scores: Scores, rules: GroupRules, { names }: Fleet) {
    this.best = new Best(names);
    this.#scores = scores;
    this.#rules = rules;
    this.#names = names;
    this.#scoreMax = rules.scoreMaxElsewhere ?? 0;
  }

  look(slot: Slot): void {
    const base = this.#scores.of(slot);
    if (base < 0) return;
    const score = judge(this.#rules, slot);
    if (score < 0) return;
    this.best.offer(slot, base + score);
    if (this.best.slot === slot) this.#bestBase = base;
  }

  mayBeBetter(slot: Slot): boolean {
    return this.#scores.of(slot) + this.#scoreMax >= this.best.score;
  }

  lookIfBetter(slot: Slot): void {
    if (this.#scores.of(slot) >= 0 && this.mayBeBetter(slot)) this.look(slot);
  }

  /**
   * Down the order. Hosts below have a lower score of their own, or an equal one and a higher name, so the end is known as soon as the best
   * so far reaches what the next could get at most. False: not known after `steps` hosts, or at the end of an order that is not of all.
   */
  walk(order: Iterable<Slot>, steps: number, areAll: boolean): boolean {
    let left = steps;
    for (const slot of order) {
      const base = this.#scores.of(slot);
      const bound = base + this.#scoreMax;
      const { best } = this;
      if (best.score > bound) return true;
      if (best.score === bound && this.#bestBase === base && (this.#names[best.slot] ?? '') < (this.#names[slot] ?? ''))
        return true;
      if (left-- === 0) return false;
      this.look(slot);
    }
    return areAll;
  }
}
