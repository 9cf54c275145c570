// Same subtree: of the groups named together, the provider of one must be the same as, or above, those of all others. It is
// checked for choices so far: whether some provider, chosen or still possible, can be that one.

import type { CandidateIndex, CandidateProvider, CandidateQuestion } from '../candidate-question.ts';
import type { Slot } from './slots.ts';

export class SameSubtree {
  /** Of each rule, the slots of its groups. */
  readonly #rules: readonly (readonly number[])[];
  readonly #slots: readonly Slot[];
  readonly #index: CandidateIndex;
  readonly #above = new Map<string, ReadonlySet<string>>();

  constructor(slots: readonly Slot[], { sameSubtree }: CandidateQuestion, index: CandidateIndex) {
    this.#slots = slots;
    this.#index = index;
    this.#rules = sameSubtree.map((suffixes) =>
      slots.flatMap(({ group }, at) => (group.suffix !== '' && suffixes.includes(group.suffix) ? [at] : [])),
    );
  }

  /** Whether the rules hold, or may still come to hold; `chosen` fills the first slots. */
  canHold(chosen: readonly CandidateProvider[]): boolean {
    return this.#rules.every((rule) => this.#ruleCanHold(rule, chosen));
  }

  #ruleCanHold(rule: readonly number[], chosen: readonly CandidateProvider[]): boolean {
    const providers = rule.flatMap((at) => chosen[at] ?? []);
    if (providers.length === 0) return true;
    const common = this.#commonAncestors(providers);
    if (providers.some(({ id }) => common.has(id))) return true;
    return rule.some((at) => at >= chosen.length && this.#slots[at]?.options.some(({ id }) => common.has(id)));
  }

  #commonAncestors([first, ...others]: readonly CandidateProvider[]): ReadonlySet<string> {
    const common = new Set(first ? this.#ancestorsOf(first) : []);
    for (const provider of others) {
      const above = this.#ancestorsOf(provider);
      for (const id of common) if (!above.has(id)) common.delete(id);
    }
    return common;
  }

  /** The provider itself and all above it. */
  #ancestorsOf(provider: CandidateProvider): ReadonlySet<string> {
    const known = this.#above.get(provider.id);
    if (known) return known;
    const above = new Set<string>();
    for (let at: CandidateProvider | undefined = provider; at && !above.has(at.id); at = this.#parentOf(at))
      above.add(at.id);
    this.#above.set(provider.id, above);
    return above;
  }

  #parentOf({ parent }: CandidateProvider): CandidateProvider | undefined {
    return parent === null ? undefined : this.#index.provider(parent);
  }
}
