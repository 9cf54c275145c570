// Assertions for what cannot be. They stay on in production: a broken invariant must stop the process that broke it.

export class AssertionError extends Error {
  override name = 'AssertionError';
}

/** Throws `AssertionError` when `condition` is false. `message` says which invariant broke. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/** The `default` arm of an exhaustive `switch`: a compile error if a case is missing, a crash if a foreign value came in. */
export function assertNever(value: never): never {
  throw new AssertionError(`unexpected value: ${JSON.stringify(value)}`);
}
