// The part of JSON Schema that the Placement API's bodies and queries need, with refusals in the words of Python's jsonschema:
// clients and their tests read these.

import type { Prng } from '../../../base/prng.ts';
import { isRecord } from '../../../base/is-record.ts';

export interface Schema {
  readonly type?: JsonType | readonly JsonType[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: false;
  readonly required?: readonly string[];
  readonly minProperties?: number;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly uniqueItems?: true;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: 'uuid';
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly anyOf?: readonly Schema[];
}

type JsonType = 'object' | 'array' | 'string' | 'integer' | 'number' | 'null';

/** With or without hyphens, braces and the prefix of a URN, as Python's uuid takes it. */
export function isUuidLike(text: string): boolean {
  return /^[0-9a-f]{32}$/i.test(
    text
      .replace(/urn:|uuid:/g, '')
      .replace(/^[{}]+|[{}]+$/g, '')
      .replaceAll('-', ''),
  );
}

/** `text`, which is like a UUID, in its usual form. */
export function normalUuid(text: string): string {
  const hex = text
    .toLowerCase()
    .replace(/urn:|uuid:/g, '')
    .replace(/[^0-9a-f]/g, '');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** Version 4. */
export function randomUuid(prng: Prng): string {
  const digits = Array.from({ length: 32 }, (_, i) => (i === 12 ? 4 : i === 16 ? 8 + prng.below(4) : prng.below(16)));
  return normalUuid(digits.map((digit) => digit.toString(16)).join(''));
}

/** What is wrong with the value, or undefined. */
export function schemaFault(value: unknown, schema: Schema): string | undefined {
  const [fault] = [...faults(value, schema, { schemaPath: [], at: [] })].sort(byRelevance);
  if (!fault) return undefined;
  const where = fault.schemaPath.map((part) => `['${part}']`).join('');
  const on = fault.at.map((part) => (typeof part === 'number' ? `[${part}]` : `['${part}']`)).join('');
  return `${fault.message}\n\nFailed validating '${fault.keyword}' in schema${where}:\n    ${python(fault.schema)}\n\nOn instance${on}:\n    ${python(fault.instance)}`;
}

/** As Python's jsonschema chooses: the outermost, and of those first what is not even of the type. */
function byRelevance(a: Fault, b: Fault): number {
  return a.at.length - b.at.length || Number(a.keyword !== 'type') - Number(b.keyword !== 'type');
}

interface Place {
  readonly schemaPath: readonly string[];
  readonly at: readonly (string | number)[];
}

interface Fault extends Place {
  readonly message: string;
  readonly keyword: string;
  readonly schema: unknown;
  readonly instance: unknown;
}

function* faults(value: unknown, schema: Schema, place: Place): Generator<Fault> {
  const fault = (keyword: string, message: string): Fault => ({ ...place, keyword, message, schema, instance: value });
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length > 0 && !types.some((type) => isOfType(value, type))) {
    yield fault('type', `${python(value)} is not of type ${types.map((type) => `'${type}'`).join(', ')}`);
    return;
  }
  if (schema.anyOf && !schema.anyOf.some((each) => faults(value, each, place).next().done)) {
    const [found] = schema.anyOf.filter((each) => each.type === (value === null ? 'null' : typeof value));
    if (found) yield* faults(value, found, place);
    else yield fault('anyOf', `${python(value)} is not valid under any of the given schemas`);
    return;
  }
  if (typeof value === 'string') yield* textFaults(value, schema, fault);
  else if (typeof value === 'number') yield* numberFaults(value, schema, fault);
  else if (Array.isArray(value)) yield* arrayFaults(value, schema, { place, fault });
  else if (isRecord(value)) yield* objectFaults(value, schema, { place, fault });
}

/** Of the patterns of all schemas, which are few. */
const patternsCompiled = new Map<string, RegExp>();

function compiled(pattern: string): RegExp {
  const known = patternsCompiled.get(pattern);
  if (known) return known;
  const made = new RegExp(pattern);
  patternsCompiled.set(pattern, made);
  return made;
}

type MakeFault = (keyword: string, message: string) => Fault;

function* textFaults(text: string, schema: Schema, fault: MakeFault): Generator<Fault> {
  const length = Array.from(text).length;
  if (schema.pattern !== undefined && !compiled(schema.pattern).test(text))
    yield fault('pattern', `${python(text)} does not match ${python(schema.pattern)}`);
  if (schema.minLength !== undefined && length < schema.minLength)
    yield fault('minLength', `${python(text)} is too short`);
  if (schema.maxLength !== undefined && length > schema.maxLength)
    yield fault('maxLength', `${python(text)} is too long`);
  if (schema.format === 'uuid' && !isUuidLike(text)) yield fault('format', `${python(text)} is not a 'uuid'`);
  if (schema.enum && !schema.enum.includes(text))
    yield fault('enum', `${python(text)} is not one of ${python(schema.enum)}`);
}

function* numberFaults(number: number, { minimum, maximum }: Schema, fault: MakeFault): Generator<Fault> {
  if (minimum !== undefined && number < minimum)
    yield fault('minimum', `${number} is less than the minimum of ${minimum}`);
  if (maximum !== undefined && number > maximum)
    yield fault('maximum', `${number} is greater than the maximum of ${maximum}`);
}

interface Inside {
  readonly place: Place;
  readonly fault: MakeFault;
}

function* arrayFaults(items: readonly unknown[], schema: Schema, { place, fault }: Inside): Generator<Fault> {
  if (schema.minItems !== undefined && items.length < schema.minItems)
    yield fault('minItems', `${python(items)} is too short`);
  if (schema.uniqueItems && new Set(items.map((item) => JSON.stringify(item))).size < items.length)
    yield fault('uniqueItems', `${python(items)} has non-unique elements`);
  if (schema.items)
    for (const [i, item] of items.entries())
      yield* faults(item, schema.items, { schemaPath: [...place.schemaPath, 'items'], at: [...place.at, i] });
}

function* objectFaults(
  object: Readonly<Record<string, unknown>>,
  schema: Schema,
  { place, fault }: Inside,
): Generator<Fault> {
  const { properties = {}, patternProperties = {}, required = [], minProperties = 0 } = schema;
  const names = Object.keys(object);
  if (names.length < minProperties) yield fault('minProperties', `${python(object)} does not have enough properties`);
  const patterns = Object.entries(patternProperties).map(([text, each]) => ({ text, pattern: compiled(text), each }));
  const unexpected: string[] = [];
  for (const name of names) {
    const own = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const inside = (...path: string[]): Place => ({
      schemaPath: [...place.schemaPath, ...path],
      at: [...place.at, name],
    });
    if (own) yield* faults(object[name], own, inside('properties', name));
    const matching = patterns.filter(({ pattern }) => pattern.test(name));
    for (const { text, each } of matching) yield* faults(object[name], each, inside('patternProperties', text));
    if (!own && matching.length === 0) unexpected.push(name);
  }
  for (const name of required)
    if (!Object.hasOwn(object, name)) yield fault('required', `${python(name)} is a required property`);
  if (schema.additionalProperties === false && unexpected.length > 0)
    yield fault(
      'additionalProperties',
      unexpectedText(
        unexpected,
        patterns.map(({ text }) => text),
      ),
    );
}

function unexpectedText(names: readonly string[], patterns: readonly string[]): string {
  const listed = [...names].sort().map(python).join(', ');
  if (patterns.length > 0) {
    const verb = names.length === 1 ? 'does' : 'do';
    return `${[...names].sort().map(python).join(', ')} ${verb} not match any of the regexes: ${[...patterns].sort().map(python).join(', ')}`;
  }
  return `Additional properties are not allowed (${listed} ${names.length === 1 ? 'was' : 'were'} unexpected)`;
}

function isOfType(value: unknown, type: JsonType): boolean {
  switch (type) {
    case 'object':
      return isRecord(value) && !Array.isArray(value);
    case 'array':
      return Array.isArray(value);
    case 'null':
      return value === null;
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

/** As Python shows it. */
function python(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'string') return quoted(value);
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`;
  if (isRecord(value))
    return `{${Object.entries(value)
      .map(([name, each]) => `${quoted(name)}: ${python(each)}`)
      .join(', ')}}`;
  return JSON.stringify(value);
}

function quoted(text: string): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
  return escaped.includes("'") && !escaped.includes('"') ? `"${escaped}"` : `'${escaped.replaceAll("'", "\\'")}'`;
}
