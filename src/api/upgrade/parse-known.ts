// Validates what a program of another version sends: fields that the schema does not know are ignored, the others are checked as strictly as
// in any request. For agents only: a field that a user misspells must be refused.

import type { Static, TSchema } from 'typebox';
import { isRecord } from '../../base/is-record.ts';
import { matches, parse } from '../parse.ts';

/** As `parse`. */
export function parseKnown<S extends TSchema>(schema: S, input: unknown): Static<S> {
  return parse(schema, matches(schema, input) ? input : withoutUnknown(schema, input));
}

/** A copy of `input` without the fields that `schema` does not name; what has another form than the schema's stays, to be refused. */
export function withoutUnknown(schema: unknown, input: unknown): unknown {
  if (!isRecord(schema)) return input;
  const { anyOf, items, properties, additionalProperties } = schema;
  if (Array.isArray(anyOf)) return ofAny(anyOf, input);
  if (Array.isArray(input)) return input.map((each) => withoutUnknown(items, each));
  if (!isRecord(input) || !isRecord(properties)) return input; // maps have names of their own
  const known = Object.entries(input).filter(
    ([name]) => Object.hasOwn(properties, name) || additionalProperties !== false,
  );
  return Object.fromEntries(known.map(([name, value]) => [name, withoutUnknown(properties[name], value)]));
}

/** By the first form that fits. */
function ofAny(forms: readonly TSchema[], input: unknown): unknown {
  for (const form of forms) {
    const known = withoutUnknown(form, input);
    if (matches(form, known)) return known;
  }
  return input;
}
