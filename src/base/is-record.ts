// Telling a JSON object from all else that `unknown` may be. It never looks inside.

/** An object, and neither null nor an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
