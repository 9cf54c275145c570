// An index from a group to its keys, for groups of which nearly all have one: that one stands alone, for a set of its own would take
// two hundred bytes for each of half a million.

export class FewKeys {
  readonly #byGroup = new Map<string, string | readonly string[]>();

  add(group: string, key: string): void {
    const known = this.of(group);
    if (!known.includes(key)) this.#byGroup.set(group, known.length === 0 ? key : [...known, key]);
  }

  delete(group: string, key: string): void {
    const rest = this.of(group).filter((each) => each !== key);
    const [first] = rest;
    if (first === undefined) this.#byGroup.delete(group);
    else this.#byGroup.set(group, rest.length === 1 ? first : rest);
  }

  of(group: string): readonly string[] {
    const known = this.#byGroup.get(group);
    return known === undefined ? none : typeof known === 'string' ? [known] : known;
  }
}

const none: readonly string[] = [];
