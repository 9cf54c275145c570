// The configuration of a process command: file < environment < flag, all validated by one schema.

import type { Static, TObject } from 'typebox';
import { type ConfigOrigin, resolveConfigWithOrigins } from '../api/config.ts';
import type { Cli } from '../cli/cli.ts';
import { attempting } from '../cli/exit-codes.ts';
import { readYamlFile } from '../cli/options/yaml-file.ts';

interface ConfigInput {
  /** Path of the YAML file from --config. */
  readonly file: string | undefined;
  readonly flags: Readonly<Record<string, unknown>>;
  readonly defaults?: Readonly<Record<string, unknown>>;
  readonly prefix: string;
  /** Additional variables for a key: ORCH_CONFIG for imageMap. */
  readonly variables?: Readonly<Record<string, string>>;
}

/** Throws `CommandError` that names the invalid value and its source. */
export async function processConfig<S extends TObject>(
  cli: Pick<Cli, 'environment'>,
  schema: S,
  input: ConfigInput,
): Promise<Static<S>> {
  return (await processConfigWithOrigins(cli, schema, input)).config;
}

/** As `processConfig`, with the origin of each key that a source sets. */
export async function processConfigWithOrigins<S extends TObject>(
  { environment }: Pick<Cli, 'environment'>,
  schema: S,
  { file, flags, defaults, prefix, variables = {} }: ConfigInput,
): Promise<{ readonly config: Static<S>; readonly origins: ReadonlyMap<string, ConfigOrigin> }> {
  const path = file ?? (environment[`${prefix}CONFIG`] || undefined);
  const also = Object.fromEntries(Object.entries(variables).map(([variable, name]) => [name, environment[variable]]));
  // Variables with the command's own prefix are more specific, so they win; the file's own variable is not a key.
  const { [`${prefix}CONFIG`]: _file, ...own } = environment;
  return attempting('read the configuration', async () =>
    resolveConfigWithOrigins(schema, {
      ...(path === undefined ? {} : { file: { path, value: await readYamlFile(path, 'the configuration') } }),
      environment: { ...definedOnly(also), ...definedOnly(own) },
      flags,
      ...(defaults === undefined ? {} : { defaults }),
      prefix,
    }),
  );
}

function definedOnly(variables: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ''),
  );
}
