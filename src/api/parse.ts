// Validates input against a schema: fills in defaults, checks everything, and reports the first error with its place.
// Nothing is coerced or dropped.

import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';

import { isRecord } from '../base/is-record.ts';
import { fillDefaults } from './defaults.ts';
import { ApiError } from './errors.ts';
import { nearest } from './nearest.ts';
import { CustomResourceClass, LabelKey, ResourceClass } from './resources/metadata.ts';

type Validator = ReturnType<typeof Compile>;
const validators = new WeakMap<TSchema, Validator>();

function validatorOf(schema: TSchema): Validator {
  let validator = validators.get(schema);
  if (!validator) {
    validator = Compile(schema);
    validators.set(schema, validator);
  }
  return validator;
}

/**
 * `input` as the schema's type. Throws `ApiError` `InvalidRequest` whose `field` is the dotted path of the first error,
 * under `at`. `input` must be plain JSON data that the caller owns (it is filled in place).
 */
export function parse<S extends TSchema>(schema: S, input: unknown, at = ''): Static<S> {
  const validator = validatorOf(schema);
  const value = fillDefaults(schema, input);
  if (validator.Check(value)) return value as Static<S>; // the codec: just checked
  throw faultOf(validator, schema, value, at);
}

/** Whether `input` is valid as it is, without defaults. */
export function matches<S extends TSchema>(schema: S, input: unknown): input is Static<S> {
  return validatorOf(schema).Check(input);
}

function faultOf(validator: Validator, schema: TSchema, value: unknown, at: string): ApiError {
  const errors = validator.Errors(value).filter((error) => error.keyword !== 'boolean');
  // An unknown or missing field explains more than the errors that follow from it.
  const error =
    errors.find((e) => e.keyword === 'additionalProperties') ??
    errors.find((e) => e.keyword === 'required') ??
    errors[0];
  if (!error) return new ApiError('InvalidRequest', 'the request is not valid', { field: at || 'body' });
  const path = joinPath(at, error.instancePath);
  const params: Readonly<Record<string, unknown>> = { ...error.params };
  if (error.keyword === 'additionalProperties') {
    const unknown = firstString(params['additionalProperties']);
    const known = knownFields(schema, error.schemaPath);
    const meant = nearest(unknown, known);
    const hint = meant
      ? `; did you mean "${meant}"?`
      : known.length
        ? `; known: ${known.join(', ')}`
        : allowedNames(schema, error.schemaPath);
    return new ApiError('InvalidRequest', `unknown field ${quoted(unknown)}${path ? ` in ${path}` : ''}${hint}`, {
      field: couldBeName(unknown) ? joinPath(path, `/${unknown}`) : path || 'body',
    });
  }
  if (error.keyword === 'required') {
    const missing = firstString(params['requiredProperties']);
    const field = joinPath(path, `/${missing}`);
    return new ApiError('InvalidRequest', `${field} is missing`, { field });
  }
  return new ApiError(
    'InvalidRequest',
    `${path || 'the body'} ${describe(error.keyword, params, schemaAt(schema, error.schemaPath), error.message)}`,
    {
      field: path || 'body',
    },
  );
}

function describe(
  keyword: string,
  params: Readonly<Record<string, unknown>>,
  schema: unknown,
  message: string,
): string {
  if (keyword === 'enum' && Array.isArray(params['allowedValues']))
    return `must be one of: ${params['allowedValues'].join(', ')}`;
  if (keyword === 'pattern' && isRecord(schema) && typeof schema['description'] === 'string')
    return `must be: ${schema['description']}`;
  if (keyword === 'type' && typeof params['type'] === 'string')
    return `must be ${typeWords[params['type']] ?? params['type']}`;
  return message;
}

const typeWords: Readonly<Record<string, string>> = {
  array: 'a list',
  boolean: 'true or false',
  integer: 'a whole number',
  number: 'a number',
  object: 'an object',
  string: 'a string',
};

function schemaAt(schema: TSchema, schemaPath: string): unknown {
  let place: unknown = schema;
  for (const part of schemaPath.split('/').slice(1))
    place = memberOf(place, part.replaceAll('~1', '/').replaceAll('~0', '~'));
  return place;
}

/** A member of an object or an array: a schema's path leads through both. */
function memberOf(place: unknown, name: string): unknown {
  return typeof place === 'object' && place !== null ? Reflect.get(place, name) : undefined;
}

function knownFields(schema: TSchema, schemaPath: string): string[] {
  const place = schemaAt(schema, schemaPath.replace(/\/additionalProperties$/, ''));
  return isRecord(place) && isRecord(place['properties']) ? Object.keys(place['properties']) : [];
}

/** For maps: the form of their keys. */
function allowedNames(schema: TSchema, schemaPath: string): string {
  const place = schemaAt(schema, schemaPath.replace(/\/additionalProperties$/, ''));
  const patterns =
    isRecord(place) && isRecord(place['patternProperties']) ? Object.keys(place['patternProperties']) : [];
  const words = patterns.map((pattern) => {
    const known = [LabelKey, ResourceClass, CustomResourceClass].find((name) => memberOf(name, 'pattern') === pattern);
    return known ? `are: ${String(memberOf(known, 'description'))}` : `match ${pattern}`;
  });
  return words.length ? `; names there ${words.join(' or ')}` : '';
}

/** `spec` + `/ports/0/hostPort` → `spec.ports[0].hostPort`. */
function joinPath(at: string, pointer: string): string {
  let path = at;
  for (const raw of pointer.split('/').slice(1)) {
    const part = printable(raw.replaceAll('~1', '/').replaceAll('~0', '~'));
    path += /^\d+$/.test(part) ? `[${part}]` : path ? `.${part}` : part;
  }
  return path;
}

function firstString(value: unknown): string {
  return Array.isArray(value) && typeof value[0] === 'string' ? value[0] : '';
}

/** Something else may be a value that was written in the place of its name: it is not repeated. */
function couldBeName(text: string): boolean {
  return text.length <= 40 && !/[^A-Za-z0-9_. \p{Cc}[-]/u.test(text);
}

function quoted(name: string): string {
  return couldBeName(name) ? `"${printable(name)}"` : `of ${name.length} characters, which is not repeated here,`;
}

/** User input, shortened and without control characters, so that an error can be shown anywhere. */
function printable(text: string): string {
  return text.slice(0, 80).replace(/[^\x20-\x7e]/g, '?');
}
