// Subtree rule: of the portions named together, the provider of one must be the same as, or above, those of the others
// (`same_subtree`). It is checked after each choice, so that a search ends early where the rule can no longer hold.

/** A portion that the rule names, and the ids of the providers that may give it. */
export interface Member {
  readonly portion: object;
  readonly options: ReadonlySet<string>;
}

export class SubtreeRule {
  readonly #members: readonly Member[];
  readonly #parents: ReadonlyMap<string, string | null>;

  constructor(members: readonly Member[], parents: ReadonlyMap<string, string | null>) {
    this.#members = members;
    this.#parents = parents;
  }

  /** Whether the rule holds or may still come to hold, with the provider ids that portions have so far. */
  canHold(takenBy: ReadonlyMap<object, readonly string[]>): boolean {
    const chosen = new Set(this.#members.flatMap(({ portion }) => takenBy.get(portion) ?? []));
    const [first, ...others] = [...chosen].map((id) => this.#upFrom(id));
    if (!first) return true;
    const above = [...first].filter((id) => others.every((each) => each.has(id)));
    if (above.some((id) => chosen.has(id))) return true;
    const open = this.#members.filter(({ portion }) => (takenBy.get(portion) ?? []).length === 0);
    return open.some(({ options }) => above.some((id) => options.has(id)));
  }

  /** The provider itself and all above it. */
  #upFrom(id: string): ReadonlySet<string> {
    const all = new Set<string>();
    for (let at: string | null | undefined = id; typeof at === 'string' && !all.has(at); at = this.#parents.get(at))
      all.add(at);
    return all;
  }
}
