// Defaults of a schema, filled into input. The library's own Value.Default (TypeBox 1.4) crashes on closed maps with foreign keys.

import { isRecord } from '../base/is-record.ts';

/** `value` with every missing field that has a default; changed in place. Anything that does not fit is left for the check. */
export function fillDefaults(schema: unknown, value: unknown): unknown {
  if (!isRecord(schema)) return value;
  if (value === undefined) {
    if (!('default' in schema)) return undefined;
    return fillDefaults(schema, structuredClone(schema['default']));
  }
  if (Array.isArray(value)) {
    if (isRecord(schema['items']))
      for (const [i, item] of value.entries()) value[i] = fillDefaults(schema['items'], item);
    return value;
  }
  if (isRecord(value) && isRecord(schema['properties'])) {
    for (const [name, property] of Object.entries(schema['properties'])) {
      const filled = fillDefaults(property, Object.hasOwn(value, name) ? value[name] : undefined);
      if (filled !== undefined) value[name] = filled;
    }
  }
  return value;
}
