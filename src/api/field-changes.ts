// What differs between two values, field by field.

import { isRecord } from '../base/is-record.ts';

export interface FieldChange {
  /** `placement.pool`, `ports[0].guest` */
  readonly field: string;
  /** Absent: it was not there. */
  readonly before?: unknown;
  /** Absent: it goes. */
  readonly after?: unknown;
}

/** The smallest fields that differ; a list of another length differs as a whole. */
export function fieldChanges(before: unknown, after: unknown, field = ''): readonly FieldChange[] {
  const [old, now] = [fieldsOf(before), fieldsOf(after)];
  if (old && now && (isRecord(before) || isRecord(after))) {
    const names = [...new Set([...Object.keys(old), ...Object.keys(now)])];
    if (names.length > 0)
      return names.flatMap((name) => fieldChanges(old[name], now[name], field === '' ? name : `${field}.${name}`));
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length)
    return before.flatMap((item, i) => fieldChanges(item, after[i], `${field}[${i}]`));
  if (Object.is(before, after) || JSON.stringify(before) === JSON.stringify(after)) return [];
  return [{ field, ...(before === undefined ? {} : { before }), ...(after === undefined ? {} : { after }) }];
}

/** A value of a change as people read it. */
export function fieldText(value: unknown): string {
  return value === undefined ? 'absent' : typeof value === 'string' ? value : JSON.stringify(value);
}

/** What is not there has no fields; undefined: it is no object. */
function fieldsOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (value === undefined) return {};
  return isRecord(value) ? value : undefined;
}
