// Assertions for what must be impossible. They stay on in production: a broken invariant must stop the process.

export class AssertionError extends Error {
  override name = 'AssertionError';
}

/**
 * Throws `AssertionError` when `condition` is false. `message` names the broken invariant; a function where building it
 * is expensive.
 */
export function assert(condition: unknown, message: string | (() => string)): asserts condition {
  if (!condition) throw new AssertionError(typeof message === 'string' ? message : message());
}
