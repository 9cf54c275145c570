// Which fields of an object its validator never looks at. Kubernetes' schemas permit any field, and the API server drops those that it does not
// know without a word: so a misspelt field would be lost.

/** Paths such as `spec.replica`. `validate` must look at each field that it knows. */
export function unknownFields(value: unknown, validate: (seen: unknown) => void): string[] {
  const looked = new Map<object, Set<PropertyKey>>();
  const seeThrough = (target: unknown): unknown => {
    if (typeof target !== 'object' || target === null) return target;
    const known = looked.get(target) ?? new Set();
    looked.set(target, known);
    return new Proxy(target, {
      get(of, key, receiver) {
        known.add(key);
        return seeThrough(Reflect.get(of, key, receiver));
      },
      // Only of maps with names of any kind, such as labels, are all keys asked for.
      ownKeys(of) {
        const keys = Reflect.ownKeys(of);
        for (const key of keys) known.add(key);
        return keys;
      },
    });
  };
  validate(seeThrough(value));
  const unknown: string[] = [];
  const walk = (target: unknown, path: string): void => {
    if (typeof target !== 'object' || target === null) return;
    const known = looked.get(target);
    for (const [key, below] of Object.entries(target)) {
      const place = path === '' ? key : `${path}.${key}`;
      if (known?.has(key)) walk(below, place);
      else unknown.push(place);
    }
  };
  walk(value, '');
  return unknown;
}
