// Chooses among hosts when rules look at neighbours. It walks down the top candidates until no later host can be
// better. When the best hosts are refused one after the other, it asks the best host of each zone or rack; else it
// scans all hosts. The answer always equals that of a full scan.

import { Best, type Choice } from './best.ts';
import type { DomainRanking } from './domain-ranking.ts';
import type { Fleet } from '../fleet.ts';
import type { GroupedLeaders } from './grouped-leaders.ts';
import type { Leaders, Scores } from './leaders.ts';
import type { Slot } from './slot.ts';
import { type GroupRules, judge, refused } from './verdicts.ts';

/** How many hosts are examined one by one before the next strategy is tried. */
export interface WalkLimits {
  /** Number of top candidates kept; the default applies when absent. */
  readonly leaders?: number;
  /**
   * Limit before the best host of each domain is examined instead; keeping that order is expensive for a shape that is
   * rarely requested.
   */
  readonly few: number;
  /**
   * Limit before the full scan: one step costs as much as about thirty hosts of a plain scan, so the walk costs at most
   * twice the better strategy.
   */
  most(hosts: number): number;
}

export const walkLimits: WalkLimits = { few: 64, most: (hosts) => Math.max(64, hosts >> 5) };

interface Ranked {
  readonly scores: Scores;
  readonly leaders: Leaders;
  byDomain(topologyKey: string): DomainRanking;
  /** Top candidates that include the verdicts of these rules; cached. */
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
    // A rule that refuses the whole domain is not evaluated for each of its hosts.
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
   * Walks down the order. Later hosts have a lower score of their own, or an equal score and a higher name, so the walk
   * ends as soon as the best score so far reaches the most that the next host can get. Returns false when `steps` hosts
   * did not decide it, or when an order that does not contain all hosts ended.
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
