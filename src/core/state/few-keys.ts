// An index from a group to its keys, for groups of which nearly all have one or a few: one stands alone, several in an array, for a set
// of its own would take hundreds of bytes for each.

export class FewKeys {
  readonly #byGroup = new Map<string, string | string[]>();

  /** The key is not there yet. */
  add(group: string, key: string): void {
    const known = this.#byGroup.get(group);
    if (known === undefined) this.#byGroup.set(group, key);
    else if (typeof known === 'string') this.#byGroup.set(group, [known, key]);
    else known.push(key);
  }

  delete(group: string, key: string): void {
    const known = this.#byGroup.get(group);
    if (known === key) this.#byGroup.delete(group);
    if (typeof known !== 'object') return;
    const at = known.indexOf(key);
    if (at < 0) return;
    known.splice(at, 1);
    const [first] = known;
    if (known.length === 1 && first !== undefined) this.#byGroup.set(group, first);
  }

  /** In the order in which they came, until the next change. */
  of(group: string): readonly string[] {
    const known = this.#byGroup.get(group);
    return known === undefined ? none : typeof known === 'string' ? [known] : known;
  }
}

const none: readonly string[] = [];
