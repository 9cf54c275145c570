// The options of `berth server` and `berth dev` for jobs from a broker: flags, variables, and a file.

import { type Static, Type } from 'typebox';
import type { Command } from 'commander';
import { isRecord } from '../base/is-record.ts';
import type { Cli } from '../cli/cli.ts';
import { usageError } from '../cli/exit-codes.ts';
import { assertNoPassword } from '../cli/options/broker-url.ts';
import { readYamlFile } from '../cli/options/yaml-file.ts';
import { ServerConfig } from '../server/config.ts';

export interface IntakeFlags {
  readonly maxConcurrency?: string;
  readonly capacityMap?: string;
  readonly amqpUrl?: string;
  readonly amqpPasswordFile?: string;
  readonly amqpCa?: string;
  readonly amqpCertificate?: string;
  readonly amqpKey?: string;
  readonly amqpExchange?: string;
  readonly amqpQueue?: string;
  readonly amqpRoutingKey?: string;
  readonly amqpPrefetch?: string;
  readonly amqpResultExchange?: string;
  readonly amqpProject?: string;
}

/** What `berth dev` takes from a file. */
export type IntakeConfig = Static<typeof IntakeConfig>;
export const IntakeConfig = Type.Pick(
  ServerConfig,
  [
    'maxConcurrency',
    'concurrencyLabel',
    'capacityMap',
    'amqpUrl',
    'amqpPasswordFile',
    'amqpCa',
    'amqpCertificate',
    'amqpKey',
    'amqpExchange',
    'amqpQueue',
    'amqpRoutingKey',
    'amqpPrefetch',
    'amqpResultExchange',
    'amqpProject',
  ],
  { additionalProperties: false },
);

export function withIntakeOptions(command: Command): Command {
  return command
    .option(
      '--max-concurrency <count>',
      'at most this many instances at once (MAX_CONCURRENCY); default: 2 with a broker, else no limit',
    )
    .option('--capacity-map <map>', 'limits per image: ubuntu-22.04=4,illumos-latest=2 (CAPACITY_MAP)')
    .option('--amqp-url <url>', 'broker whose messages become jobs; a URL with a password belongs in AMQP_URL')
    .option('--amqp-password-file <file>', 'password of the user that --amqp-url names (AMQP_PASSWORD_FILE)')
    .option('--amqp-ca <file>', 'PEM file of the authorities that amqps: is verified with (AMQP_CA)')
    .option('--amqp-certificate <file>', 'PEM file; shown to the broker, with --amqp-key (AMQP_CERTIFICATE)')
    .option('--amqp-key <file>', 'PEM file; private key of that certificate (AMQP_KEY)')
    .option('--amqp-exchange <name>', 'default: solstice.jobs (AMQP_EXCHANGE)')
    .option('--amqp-queue <name>', 'default: solstice.jobs.v1 (AMQP_QUEUE)')
    .option('--amqp-routing-key <key>', 'default: jobrequest.v1 (AMQP_ROUTING_KEY)')
    .option('--amqp-prefetch <count>', 'jobs that may wait for a place; default: --max-concurrency (AMQP_PREFETCH)')
    .option('--amqp-result-exchange <name>', 'default: --amqp-exchange (AMQP_RESULT_EXCHANGE)')
    .option('--amqp-project <name>', 'project of the jobs; default: default (AMQP_PROJECT)');
}

/** For `processConfig`: the variables that have no prefix. */
export function intakeVariables(prefix: string): Record<string, string> {
  const names = Object.keys(IntakeConfig.properties).map((key) =>
    key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase(),
  );
  const plain = names.filter((name) => name !== 'CONCURRENCY_LABEL');
  return Object.fromEntries(plain.map((name) => [name, `${prefix}${name}`]));
}

/** Throws `CommandError` for a flag that every user of the machine can read. */
export function checkedIntakeFlags<F extends IntakeFlags>(flags: F): F {
  if (flags.amqpUrl !== undefined) assertNoPassword(flags.amqpUrl);
  return flags;
}

/** Those of the intake among all flags of a command. */
export function intakeFlagsOf(flags: IntakeFlags): Record<string, unknown> {
  const known = Object.keys(IntakeConfig.properties);
  return Object.fromEntries(Object.entries(flags).filter(([name]) => known.includes(name)));
}

const imageMapKeys = new Set(['default_label', 'aliases', 'sizes', 'images']);

/**
 * What `--config` names: the configuration, or an image map, which is known by its keys. Throws `CommandError` when an
 * image map is given twice.
 */
export async function whatConfigNames(
  path: string | undefined,
  { imageMap }: { readonly imageMap: string | undefined },
): Promise<{ readonly file: string | undefined; readonly imageMap: string | undefined }> {
  if (path === undefined || !isImageMap(await readYamlFile(path, 'the configuration'))) return { file: path, imageMap };
  if (imageMap !== undefined && imageMap !== path)
    throw usageError(
      `--config names an image map, ${path}, and another one is given: ${imageMap}`,
      'give one of the two',
    );
  return { file: undefined, imageMap: path };
}

function isImageMap(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const keys = Object.keys(value);
  return keys.length > 0 && keys.every((key) => imageMapKeys.has(key));
}

/** The file that `--config` or its variable names. */
export function configPath(cli: Cli, flag: string | undefined, prefix: string): string | undefined {
  return flag ?? (cli.environment[`${prefix}CONFIG`] || undefined);
}
