// Few keys: a set that is nearly always empty or one key, stored without a set; several keys are an array. A Set would
// take hundreds of bytes for each of half a million. Never changed in place.

export type FewKeys = undefined | string | readonly string[];

/** In insertion order. */
export function listOf(keys: FewKeys): readonly string[] {
  return keys === undefined ? none : typeof keys === 'string' ? [keys] : keys;
}

/** The key must be new. */
export function withKey(keys: FewKeys, key: string): FewKeys {
  return keys === undefined ? key : [...listOf(keys), key];
}

export function withoutKey(keys: FewKeys, key: string): FewKeys {
  if (keys === key) return undefined;
  const rest = listOf(keys).filter((each) => each !== key);
  return rest.length > 1 ? rest : rest[0];
}

const none: readonly string[] = [];

/** Maps a group to its keys. */
export class KeysByGroup {
  readonly #byGroup = new Map<string, FewKeys>();

  /** The key must be new. */
  add(group: string, key: string): void {
    this.#byGroup.set(group, withKey(this.#byGroup.get(group), key));
  }

  delete(group: string, key: string): void {
    const rest = withoutKey(this.#byGroup.get(group), key);
    if (rest === undefined) this.#byGroup.delete(group);
    else this.#byGroup.set(group, rest);
  }

  of(group: string): readonly string[] {
    return listOf(this.#byGroup.get(group));
  }
}
