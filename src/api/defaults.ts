// Defaults of a schema, filled into input. The library's own Value.Default (TypeBox 1.4) crashes on closed maps with foreign keys.

import { isRecord } from '../base/is-record.ts';

type Fill = (value: unknown) => unknown;
const fillers = new WeakMap<object, Fill>();
const leave: Fill = (value) => value;

/** `value` with every missing field that has a default; changed in place. Anything that does not fit is left for the check. */
export function fillDefaults(schema: unknown, value: unknown): unknown {
  return fillerOf(schema)(value);
}

/** What the schema says is read once, for requests come by the thousand. */
function fillerOf(schema: unknown): Fill {
  if (!isRecord(schema)) return leave;
  let fill = fillers.get(schema);
  if (!fill) {
    fillers.set(schema, (value) => fillerOf(schema)(value)); // a schema may hold itself
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
  if (!hasDefault && items === leave && properties.length === 0) return leave;
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
    }
    return value;
  };
}

/** Of JSON data; the default itself must never be filled in. */
function copyOf(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  return Array.isArray(value)
    ? value.map(copyOf)
    : Object.fromEntries(Object.entries(value).map(([name, each]) => [name, copyOf(each)]));
}
