// Tells a JSON object from other values of type `unknown`. It does not check the content.

/** An object, and neither null nor an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
