// Spans as OTLP over HTTP has them in JSON (opentelemetry.io/docs/specs/otlp).

import type { Span } from './boot-spans.ts';

/** The body of a POST to `/v1/traces`. */
export function otlpTraces(spans: readonly Span[], version: string): object {
  const services = [...new Set(spans.map(({ service }) => service))];
  return {
    resourceSpans: services.map((service) => ({
      resource: { attributes: attributesOf({ 'service.name': service }) },
      scopeSpans: [
        {
          scope: { name: 'berth', version },
          spans: spans.filter((span) => span.service === service).map(spanJson),
        },
      ],
    })),
  };
}

function spanJson({ traceId, spanId, parentSpanId, name, startMs, endMs, attributes }: Span): object {
  return {
    ...{ traceId, spanId, ...(parentSpanId === undefined ? {} : { parentSpanId }), name },
    kind: 1, // SPAN_KIND_INTERNAL
    startTimeUnixNano: nanoseconds(startMs),
    endTimeUnixNano: nanoseconds(endMs),
    attributes: attributesOf(attributes),
  };
}

/** As text: a number of JSON has too few digits. */
function nanoseconds(ms: number): string {
  return `${Math.round(ms * 1_000)}000`;
}

function attributesOf(values: Readonly<Record<string, string>>): object[] {
  return Object.entries(values).map(([key, stringValue]) => ({ key, value: { stringValue } }));
}
