// The `traceparent` of W3C Trace Context (www.w3.org/TR/trace-context): the trace of a request. It is propagated unchanged. An invalid value is
// ignored, as the recommendation requires.

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/** Future versions may be longer. */
const lengthMax = 128;

/** Returns the text if it is a valid `traceparent`. */
export function traceParentIn(text: unknown): string | undefined {
  if (typeof text !== 'string' || text.length > lengthMax) return undefined;
  const [, version, traceId = '', spanId = '', , rest] = form.exec(text) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  return /^0+$/.test(traceId) || /^0+$/.test(spanId) ? undefined : text;
}

/** Trace id of a valid `traceparent`: 32 hex digits. */
export function traceIdIn(traceParent: string): string {
  return traceParent.slice(3, 35);
}

/** Span id of the caller in a valid `traceparent`: 16 hex digits. */
export function spanIdIn(traceParent: string): string {
  return traceParent.slice(36, 52);
}
