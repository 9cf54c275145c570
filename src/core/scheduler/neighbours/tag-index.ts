// TagIndex: one value for each label or placement group of a project. Nested maps, so that a lookup joins no strings.

export class TagIndex<T> {
  readonly #byProject = new Map<string, Map<string, Map<string, T>>>();

  get(project: string, key: string, value: string): T | undefined {
    return this.#byProject.get(project)?.get(key)?.get(value);
  }

  /** The existing value, or a new one from `make`. */
  at(project: string, key: string, value: string, make: () => T): T {
    let found = this.get(project, key, value);
    if (found === undefined) this.set(project, key, value, (found = make()));
    return found;
  }

  set(project: string, key: string, value: string, one: T): void {
    let byKey = this.#byProject.get(project);
    if (!byKey) this.#byProject.set(project, (byKey = new Map()));
    let byValue = byKey.get(key);
    if (!byValue) byKey.set(key, (byValue = new Map()));
    byValue.set(value, one);
  }

  delete(project: string, key: string, value: string): void {
    const byKey = this.#byProject.get(project);
    const byValue = byKey?.get(key);
    if (!byKey || !byValue?.delete(value) || byValue.size > 0) return;
    byKey.delete(key);
    if (byKey.size === 0) this.#byProject.delete(project);
  }

  clear(): void {
    this.#byProject.clear();
  }
}
