// Assertions for what cannot be. They stay on in production: a broken invariant must stop the process that broke it.

export class AssertionError extends Error {
  override name = 'AssertionError';
}

/** Throws `AssertionError` when `condition` is false. `message` says which invariant broke; a function where making it costs. */
export function assert(condition: unknown, message: string | (() => string)): asserts condition {
  if (!condition) throw new AssertionError(typeof message === 'string' ? message : message());
}
