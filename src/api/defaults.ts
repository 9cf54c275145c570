// Fills the defaults of a schema into input. The library's own Value.Default (TypeBox 1.4) crashes on closed maps with
// foreign keys.

import { isRecord } from '../base/is-record.ts';

type Fill = (value: unknown) => unknown;
const fillers = new WeakMap<object, Fill>();
const leave: Fill = (value) => value;

/** `value` with defaults for missing fields; changed in place. Values that do not fit are left for validation. */
export function fillDefaults(schema: unknown, value: unknown): unknown {
  return fillerOf(schema)(value);
}

/** Each schema is compiled once, because there are thousands of requests. */
function fillerOf(schema: unknown): Fill {
  if (!isRecord(schema)) return leave;
  let fill = fillers.get(schema);
  if (!fill) {
    fillers.set(schema, (value) => fillerOf(schema)(value)); // a schema may contain itself
    fillers.set(schema, (fill = makeFiller(schema)));
  }
  return fill;
}

function makeFiller(schema: Record<string, unknown>): Fill {
  const hasDefault = 'default' in schema;
  const byDefault = schema['default'];
  const items = isRecord(schema['items']) ? fillerOf(schema['items']) : leave;
  const properties = isRecord(schema['properties'])
    ? Object.entries(schema['properties'])
        .map(([name, property]) => ({ name, fill: fillerOf(property) }))
        .filter(({ fill }) => fill !== leave)
    : [];
  // A map of names to values has one pattern.
  const patterns = isRecord(schema['patternProperties']) ? Object.values(schema['patternProperties']) : [];
  const each = fillerOf(patterns[0]);
  if (!hasDefault && items === leave && properties.length === 0 && each === leave) return leave;
  return (given) => {
    if (given === undefined && !hasDefault) return undefined;
    const value = given === undefined ? copyOf(byDefault) : given;
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) {
      if (items !== leave) for (const [i, item] of value.entries()) value[i] = items(item);
    } else if (isRecord(value)) {
      for (const { name, fill } of properties) {
        const before = Object.hasOwn(value, name) ? value[name] : undefined;
        const filled = fill(before);
        if (filled !== undefined && filled !== before) value[name] = filled;
      }
      if (each !== leave) for (const [name, before] of Object.entries(value)) value[name] = each(before);
    }
    return value;
  };
}

/** Copies JSON data, so that the default itself is never filled in. */
function copyOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  return Array.isArray(value)
    ? value.map(copyOf)
    : Object.fromEntries(Object.entries(value).map(([name, each]) => [name, copyOf(each)]));
}
