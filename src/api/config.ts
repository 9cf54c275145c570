// The configuration of a process from three sources: file < environment < flag. Pure: the caller reads the file.
// Nothing is ignored: an unknown key is refused in every source, and every error names the source of the value.

import { type Static, type TObject, type TSchema } from 'typebox';
import { isRecord } from '../base/is-record.ts';
import { ApiError } from './errors.ts';
import { nearest } from './nearest.ts';
import { parse } from './parse.ts';

export interface ConfigSources {
  readonly file?: { readonly path: string; readonly value: unknown };
  /** Defaults that depend on the running machine, such as its name. All others are in the schema. */
  readonly defaults?: Readonly<Record<string, unknown>>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** By key of the schema; undefined: not given. Texts are converted to the key's type. */
  readonly flags: Readonly<Record<string, unknown>>;
  /** `BERTH_SERVER_`: then `dataDirectory` is `BERTH_SERVER_DATA_DIRECTORY`. */
  readonly prefix: string;
}

/** Where a value comes from. */
export type ConfigSource = 'default' | 'file' | 'environment' | 'flag';

export interface ConfigOrigin {
  readonly source: ConfigSource;
  /** The path of the file, the variable, or the flag. */
  readonly name?: string;
}

/** Throws `ApiError` `InvalidRequest`: `port from BERTH_SERVER_PORT: must be …`. */
export function resolveConfig<S extends TObject>(schema: S, sources: ConfigSources): Static<S> {
  return resolveConfigWithOrigins(schema, sources).config;
}

/** As `resolveConfig`, with the origin of each key that a source sets; all others have the default of the schema. */
export function resolveConfigWithOrigins<S extends TObject>(
  schema: S,
  sources: ConfigSources,
): { readonly config: Static<S>; readonly origins: ReadonlyMap<string, ConfigOrigin> } {
  const values: Record<string, unknown> = {};
  const origins = new Map<string, ConfigOrigin>();
  const take = (key: string, value: unknown, origin: ConfigOrigin): void => {
    values[key] = value;
    origins.set(key, origin);
  };
  for (const [key, value] of Object.entries(sources.defaults ?? {})) take(key, value, { source: 'default' });
  for (const [key, value] of fileEntries(schema, sources.file))
    take(key, value, { source: 'file', name: sources.file?.path ?? 'the file' });
  for (const [name, text] of environmentEntries(schema, sources)) {
    const key = keyOfVariable(name, sources.prefix);
    take(key, read(schema.properties[key], text, { key, origin: name }), { source: 'environment', name });
  }
  for (const [key, value] of Object.entries(sources.flags)) {
    const origin = flagOf(key);
    if (value === undefined) continue;
    take(key, typeof value === 'string' ? read(schema.properties[key], value, { key, origin }) : value, {
      source: 'flag',
      name: origin,
    });
  }
  try {
    return { config: parse(schema, values), origins };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const key = /^[^.[]*/.exec(error.field ?? '')?.[0] ?? '';
    const origin = origins.get(key);
    throw new ApiError(
      'InvalidRequest',
      origin === undefined
        ? missing(key, sources.prefix)
        : `${error.message}; it comes from ${origin.name ?? 'the default'}`,
      {
        ...(error.field === undefined ? {} : { field: error.field }),
        cause: error,
      },
    );
  }
}

function fileEntries(schema: TObject, file: ConfigSources['file']): [string, unknown][] {
  if (!file || file.value === null || file.value === undefined) return []; // an empty file sets nothing
  const { path, value } = file;
  if (typeof value !== 'object' || Array.isArray(value))
    throw new ApiError('InvalidRequest', `${path} must be a map of keys to values`);
  const known = Object.keys(schema.properties);
  for (const key of Object.keys(value)) {
    if (!known.includes(key))
      throw new ApiError('InvalidRequest', `${path}: unknown key "${key.slice(0, 80)}"${hint(key, known)}`, {
        field: key.slice(0, 80),
      });
  }
  return Object.entries(value);
}

function environmentEntries(schema: TObject, { environment, prefix }: ConfigSources): [string, string][] {
  const known = Object.keys(schema.properties).map((key) => variableOf(key, prefix));
  return Object.entries(environment).flatMap(([name, text]): [string, string][] => {
    if (!name.startsWith(prefix) || text === undefined || text === '') return [];
    if (!known.includes(name))
      throw new ApiError('InvalidRequest', `unknown environment variable ${name.slice(0, 80)}${hint(name, known)}`);
    return [[name, text]];
  });
}

/** More names would hide the message. */
const namesShown = 20;

function hint(word: string, known: readonly string[]): string {
  const meant = nearest(word, known);
  if (meant) return `; did you mean "${meant}"?`;
  return known.length > namesShown ? '; docs/configuration.md lists all of them' : `; known: ${known.join(', ')}`;
}

/** `dataDirectory` → `BERTH_SERVER_DATA_DIRECTORY`. */
export function variableOf(key: string, prefix: string): string {
  return prefix + key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

function keyOfVariable(name: string, prefix: string): string {
  return name
    .slice(prefix.length)
    .toLowerCase()
    .replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** Flags that are shorter than their key. */
const shorterFlags = new Map([
  ['dataDirectory', '--data-dir'],
  ['serverUrl', '--server'],
  ['hostName', '--name'],
  ['drivers', '--driver'],
  ['labels', '--label'],
]);

/** `logLevel` → `--log-level`. */
function flagOf(key: string): string {
  return shorterFlags.get(key) ?? `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function missing(key: string, prefix: string): string {
  return `${key} is missing: give ${flagOf(key)}, ${variableOf(key, prefix)} or "${key}" in the configuration file`;
}

/** Converts a text to the type of its key. A text that does not fit is left for the schema to refuse. */
function read(schema: TSchema | undefined, text: string, { key, origin }: { key: string; origin: string }): unknown {
  const type = schema && 'type' in schema ? schema.type : undefined;
  switch (type) {
    case 'integer':
    case 'number':
      if (!/^-?\d{1,15}(\.\d{1,6})?$/.test(text))
        throw new ApiError(
          'InvalidRequest',
          `${key} must be a number, not "${text.slice(0, 80)}"; it comes from ${origin}`,
          { field: key },
        );
      return Number(text);
    case 'boolean':
      if (text !== 'true' && text !== 'false')
        throw new ApiError(
          'InvalidRequest',
          `${key} must be true or false, not "${text.slice(0, 80)}"; it comes from ${origin}`,
          { field: key },
        );
      return text === 'true';
    case 'array':
      return text.split(',').map((part) => part.trim());
    case 'object':
      return Object.fromEntries(text.split(',').map((part) => pairOf(schema, part)));
    default:
      return text;
  }
}

/** `zone=a` → ['zone', 'a'], `first=20000` → ['first', 20000] where the schema wants a number. */
function pairOf(schema: TSchema | undefined, text: string): [string, unknown] {
  const [key = '', ...rest] = text.split('=');
  const name = key.trim();
  const value = rest.join('=').trim();
  const type = typeOfEntry(schema, name);
  return [
    name,
    (type === 'integer' || type === 'number') && /^-?\d{1,15}(\.\d{1,6})?$/.test(value) ? Number(value) : value,
  ];
}

function typeOfEntry(schema: TSchema | undefined, name: string): unknown {
  const { properties, patternProperties }: { properties?: unknown; patternProperties?: unknown } = schema ?? {};
  const own = isRecord(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
  const entry = own ?? (isRecord(patternProperties) ? Object.values(patternProperties)[0] : undefined);
  return isRecord(entry) ? entry['type'] : undefined;
}
