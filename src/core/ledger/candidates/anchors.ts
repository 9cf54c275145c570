// Anchors: the trees that candidates may come from, each with the providers that share with it. A candidate comes from
// one tree and from what is shared with any member of that tree.

import type { CandidateIndex, CandidateProvider, CandidateQuestion } from '../candidate-question.ts';

export interface Anchor {
  readonly root: CandidateProvider;
  /** The root first. */
  readonly members: readonly CandidateProvider[];
  /** Providers of other trees that have an aggregate together with a member. */
  readonly sharing: readonly CandidateProvider[];
}

export class Anchors {
  readonly #index: CandidateIndex;
  readonly #question: CandidateQuestion;
  /** Sharing providers by aggregate; empty in most fleets. */
  readonly #sharingIn: ReadonlyMap<string, readonly CandidateProvider[]>;

  constructor(index: CandidateIndex, question: CandidateQuestion) {
    this.#index = index;
    this.#question = question;
    this.#sharingIn = sharingByAggregate(index);
  }

  /** Roots of the trees to look at. */
  roots(): readonly string[] {
    // What has no suffix stays in the tree that it names, and takes nothing that is shared with it.
    const plain = this.#question.groups.find(({ suffix }) => suffix === '');
    if (plain?.inTree === undefined) return this.#index.roots();
    const provider = this.#index.provider(plain.inTree);
    return provider ? [provider.root] : [];
  }

  /** Undefined when the root's traits are not as asked. */
  at(rootId: string): Anchor | undefined {
    const members = this.#index.tree(rootId);
    const [root] = members;
    if (!root) return undefined;
    const { rootRequired, rootForbidden } = this.#question;
    if (rootRequired.length > 0 && !rootRequired.every((trait) => root.traits.includes(trait))) return undefined;
    if (rootForbidden.some((trait) => root.traits.includes(trait))) return undefined;
    return { root, members, sharing: this.#sharingIn.size === 0 ? none : this.#sharingWith(members) };
  }

  #sharingWith(members: readonly CandidateProvider[]): readonly CandidateProvider[] {
    const sharing = new Set<CandidateProvider>();
    const root = members[0]?.root;
    for (const { aggregates } of members) {
      for (const aggregate of aggregates) {
        for (const provider of this.#sharingIn.get(aggregate) ?? none)
          if (provider.root !== root) sharing.add(provider);
      }
    }
    return [...sharing];
  }
}

function sharingByAggregate(index: CandidateIndex): ReadonlyMap<string, readonly CandidateProvider[]> {
  const byAggregate = new Map<string, CandidateProvider[]>();
  for (const id of index.sharing()) {
    const provider = index.provider(id);
    for (const aggregate of provider?.aggregates ?? []) {
      const known = byAggregate.get(aggregate);
      if (provider && known) known.push(provider);
      else if (provider) byAggregate.set(aggregate, [provider]);
    }
  }
  return byAggregate;
}

const none: readonly CandidateProvider[] = [];
