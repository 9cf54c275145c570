// The `traceparent` of W3C Trace Context (www.w3.org/TR/trace-context): which trace a request is part of. It is passed on as it came; what
// is not one counts as none, as the recommendation has it.

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/** Versions to come may be longer. */
const lengthMax = 128;

/** The same text, if it is a valid `traceparent`. */
export function traceParentIn(text: unknown): string | undefined {
  if (typeof text !== 'string' || text.length > lengthMax) return undefined;
  const [, version, traceId = '', spanId = '', , rest] = form.exec(text) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  return /^0+$/.test(traceId) || /^0+$/.test(spanId) ? undefined : text;
}

/** Of a valid one: 32 hex digits. */
export function traceIdIn(traceParent: string): string {
  return traceParent.slice(3, 35);
}

/** Of a valid one: the span of the caller, 16 hex digits. */
export function spanIdIn(traceParent: string): string {
  return traceParent.slice(36, 52);
}
