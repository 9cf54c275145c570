// The flags and the file of `berth job run`, as a job.

import type { Command } from 'commander';
import type { Job, JobSpec } from '../../api/resources/job.ts';
import { nearest } from '../../api/nearest.ts';
import { isRecord } from '../../base/is-record.ts';
import type { Cli } from '../cli.ts';
import { usageError } from '../exit-codes.ts';
import { publicKeys } from '../instances/run.ts';
import { envOf } from '../options/container-options.ts';
import { oneOf } from '../options/place-options.ts';
import { readTextFile } from '../options/read-file.ts';
import { collect, parseDiskGiB, parseDurationMs, parseInteger, parseLabels, parseMemoryMiB } from '../options/units.ts';
import { parseYaml } from '../options/yaml-file.ts';
import {
  type ImageCredentialOptions,
  imageCredentialsOf,
  withImageCredentialOption,
} from '../options/image-credential-options.ts';
import { shellWord } from '../print/shell-word.ts';

export interface JobOptions extends ImageCredentialOptions {
  readonly name?: string;
  readonly file?: string;
  readonly size?: string;
  readonly cpus?: string;
  readonly memory?: string;
  readonly disk?: string;
  readonly driver?: string;
  readonly pool?: string;
  readonly hostLabel: readonly string[];
  readonly warmPool?: string;
  readonly env: readonly string[];
  readonly envSecret: readonly string[];
  readonly envFile: readonly string[];
  readonly repo?: string;
  readonly commit?: string;
  readonly path?: string;
  readonly timeout?: string;
  readonly retries?: string;
  readonly retryOn: readonly string[];
  readonly hold?: string;
  readonly artifacts: readonly string[];
  readonly priority?: string;
  readonly supersedes?: string;
  readonly label: readonly string[];
  readonly sshKey: readonly string[];
}

const retryCauses = ['infrastructure', 'failure'] as const;

/** Those of the spec, and labels. */
export function withJobOptions(command: Command): Command {
  return withImageCredentialOption(command)
    .argument('[label]', 'alias or name of an image: berth image ls; default: the default label')
    .argument('[command...]', 'after --: the command, run by "sh -c" in the guest; one word is a line for the shell')
    .option('-f, --file <file>', 'YAML of the job, or of its spec; flags override it; - reads standard input')
    .option('-s, --size <size>', 'a named amount of resources: berth size ls')
    .option('-c, --cpus <count>', 'virtual CPUs')
    .option('-m, --memory <amount>', '512MiB, 1GiB')
    .option('-d, --disk <amount>', '10GiB; 0: as large as the image')
    .option('--warm-pool <warm-pool>', 'claim a guest that is booted already: berth warm-pool ls')
    .option('--driver <driver>', 'only with this driver; berth driver ls shows them')
    .option('--pool <pool>', 'only on hosts of this pool')
    .option('--host-label <key=value>', 'only on hosts with this label; may be repeated', collect, [])
    .option(
      '-e, --env <name=value>',
      'environment variable of the command; NAME alone reads the value from this environment; may be repeated',
      collect,
      [],
    )
    .option(
      '--env-secret <name=secret/key>',
      'a variable with a value of a secret, which is masked in the log; may be repeated',
      collect,
      [],
    )
    .option('--env-file <file>', 'lines of NAME=VALUE; - reads standard input; may be repeated', collect, [])
    .option('--repo <url>', 'run in the files of a commit of this repository; with --commit')
    .option('--commit <hash>', 'the full hash of the commit')
    .option('--path <file>', 'without a command: the file of the repository to run; default: .solstice/job.sh')
    .option('-t, --timeout <duration>', 'end the command after 90s, 10m; default: 1h')
    .option('--retries <count>', 'further attempts after the first; default: 2')
    .option(
      '--retry-on <cause>',
      `${retryCauses.join(' or ')}; what is retried; may be repeated; default: infrastructure`,
      collect,
      [],
    )
    .option('--hold <duration>', 'keep the instance of a failed command for inspection: 30m')
    .option(
      '--artifacts <pattern>',
      'files to keep, relative to the work directory: build/*.tar; may be repeated',
      collect,
      [],
    )
    .option('--priority <number>', 'queue priority, -1000 to 1000; higher values are placed first; default: 0')
    .option('--supersedes <key>', 'cancel the older jobs of the project with the same key')
    .option('-l, --label <key=value>', 'label of the job; may be repeated', collect, [])
    .option(
      '--ssh-key <file>',
      'file of public keys for the guest, one per line; for --hold; may be repeated',
      collect,
      [],
    );
}

export interface NewJob {
  readonly name?: string;
  /** As the file has it. */
  readonly project?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: Partial<JobSpec>;
}

/** `label`, `words`: the arguments before and after `--`. */
export async function jobOf(
  cli: Cli,
  { label, words }: { readonly label: string | undefined; readonly words: readonly string[] },
  options: JobOptions,
): Promise<NewJob> {
  const file = options.file === undefined ? {} : await readJobFile(cli, options.file);
  const name = options.name ?? file.name;
  const env = await envOf(cli, options);
  const sshKeys = (await Promise.all(options.sshKey.map((path) => publicKeys(cli, path)))).flat();
  const { image: _image, ...withoutImage } = file.spec ?? {};
  const spec: Partial<JobSpec> = {
    ...(label === undefined ? file.spec : { ...withoutImage, label }),
    ...(words.length === 0 ? {} : { script: scriptOf(words) }),
    ...roomOf(options),
    ...placementOf(options, file.spec?.placement),
    ...imageCredentialsOf(options),
    ...repoOf(options, file.spec?.repo),
    ...(Object.keys(env).length === 0 ? {} : { env: { ...(isRecord(file.spec?.env) ? file.spec.env : {}), ...env } }),
    ...limitsOf(options, file.spec?.retries),
    ...(options.artifacts.length === 0 ? {} : { artifacts: [...options.artifacts] }),
    ...(options.supersedes === undefined ? {} : { supersedes: options.supersedes }),
    ...(sshKeys.length === 0 ? {} : { sshKeys }),
  };
  if (spec.script === undefined && spec.repo === undefined)
    throw usageError(
      'there is no command to run',
      'write it after --: berth job run LABEL -- make test; or name a file with -f, or a repository with --repo',
    );
  return {
    ...(name === undefined ? {} : { name }),
    ...(file.project === undefined ? {} : { project: file.project }),
    labels: { ...file.labels, ...parseLabels('--label', options.label) },
    spec,
  };
}

/** One word is a line for the shell; several are quoted, so that the program gets the same words. */
function scriptOf(words: readonly string[]): string {
  const [first = '', ...rest] = words;
  return rest.length === 0 ? first : words.map(shellWord).join(' ');
}

function roomOf({ size, cpus, memory, disk, driver, warmPool }: JobOptions): Partial<JobSpec> {
  return {
    ...(size === undefined ? {} : { size }),
    ...(cpus === undefined ? {} : { cpus: parseInteger('--cpus', cpus, { min: 1, max: 1024 }) }),
    ...(memory === undefined ? {} : { memoryMiB: parseMemoryMiB(memory) }),
    ...(disk === undefined ? {} : { diskGiB: parseDiskGiB(disk) }),
    ...(driver === undefined ? {} : { driver }),
    ...(warmPool === undefined ? {} : { warmPool }),
  };
}

function placementOf({ pool, hostLabel }: JobOptions, inFile: unknown): Partial<JobSpec> {
  if (pool === undefined && hostLabel.length === 0) return {};
  const placement = {
    ...(isRecord(inFile) ? inFile : {}),
    ...(pool === undefined ? {} : { pool }),
    ...(hostLabel.length === 0 ? {} : { hostLabels: parseLabels('--host-label', hostLabel) }),
  };
  return { placement }; // the server checks the fields of the file
}

function repoOf({ repo: url, commit, path }: JobOptions, inFile: unknown): Partial<JobSpec> {
  if (url === undefined && commit === undefined && path === undefined) return {};
  const known = isRecord(inFile) ? inFile : {};
  if (url === undefined && known['url'] === undefined)
    throw usageError(`${commit === undefined ? '--path' : '--commit'} needs --repo`);
  if (commit === undefined && known['commit'] === undefined)
    throw usageError(
      '--repo needs --commit',
      'a job runs one commit, whatever its branch is later: git rev-parse HEAD',
    );
  const repo = {
    ...known,
    ...(url === undefined ? {} : { url }),
    ...(commit === undefined ? {} : { commit: commit.toLowerCase() }),
    ...(path === undefined ? {} : { path }),
  };
  return { repo: repo as NonNullable<JobSpec['repo']> }; // the server checks the fields of the file
}

function limitsOf({ timeout, retries, retryOn, hold, priority }: JobOptions, inFile: unknown): Partial<JobSpec> {
  const causes = retryOn.map((cause) => oneOf('--retry-on', cause, retryCauses));
  const known = isRecord(inFile) ? inFile : {};
  const all = {
    ...known,
    ...(retries === undefined ? {} : { max: parseInteger('--retries', retries, { min: 0, max: 10 }) }),
    ...(causes.length === 0 ? {} : { on: [...new Set(causes)] }),
  };
  return {
    ...(timeout === undefined ? {} : { timeoutMs: parseDurationMs('--timeout', timeout) }),
    ...(retries === undefined && causes.length === 0 ? {} : { retries: all as JobSpec['retries'] }), // likewise
    ...(hold === undefined ? {} : { holdOnFailureMs: parseDurationMs('--hold', hold) }),
    ...(priority === undefined ? {} : { priority: parseInteger('--priority', priority, { min: -1000, max: 1000 }) }),
  };
}

interface JobFile {
  readonly name?: string;
  readonly project?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec?: Partial<JobSpec>;
}

/** A whole resource, with `metadata` and `spec`, or only the spec. The server checks the values. */
async function readJobFile(cli: Cli, path: string): Promise<JobFile> {
  const from = path === '-' ? 'standard input' : path;
  const value = await parseYaml(await readTextFile(cli, path, { what: 'the job', bytesMax: 1024 * 1024 }), from);
  if (!isRecord(value)) throw usageError(`${from} has no fields of a job`, 'docs/jobs.md has an example');
  const whole = 'spec' in value || 'metadata' in value || 'kind' in value;
  if (!whole) return { spec: await checkedSpec(value, from) };
  const { kind = 'job', metadata = {}, spec } = value;
  assertKnown(Object.keys(value), ['kind', 'metadata', 'spec', 'schemaVersion', 'status'], `${from}: a job`);
  if (kind !== 'job') throw usageError(`${from}: kind must be job, not "${String(kind).slice(0, 80)}"`);
  if (!isRecord(spec)) throw usageError(`${from}: spec is missing`, 'docs/jobs.md has an example');
  if (!isRecord(metadata)) throw usageError(`${from}: metadata must have fields`, 'write metadata: {name: ci-1}');
  const { Metadata } = await import('../../api/resources/metadata.ts');
  assertKnown(Object.keys(metadata), Object.keys(Metadata.properties), `${from}: the metadata of a job`);
  const { name, project, labels = {} } = metadata;
  if (name !== undefined && typeof name !== 'string') throw usageError(`${from}: metadata.name must be a text`);
  if (project !== undefined && typeof project !== 'string')
    throw usageError(`${from}: metadata.project must be a text`);
  if (!isRecord(labels)) throw usageError(`${from}: metadata.labels must have fields`, 'write labels: {team: web}');
  const named = { ...(name === undefined ? {} : { name }), ...(project === undefined ? {} : { project }) };
  return { ...named, labels: labels as Job['metadata']['labels'], spec: await checkedSpec(spec, from) }; // the server checks them
}

async function checkedSpec(value: Record<string, unknown>, path: string): Promise<Partial<JobSpec>> {
  const { JobSpec: schema } = await import('../../api/resources/job.ts');
  assertKnown(Object.keys(value), Object.keys(schema.properties), `${path}: the spec of a job`);
  return value; // the server checks them
}

function assertKnown(fields: readonly string[], known: readonly string[], owner: string): void {
  for (const field of fields) {
    if (known.includes(field)) continue;
    const meant = nearest(field, known);
    throw usageError(
      `${owner} has no field "${field}"`,
      meant === undefined ? 'docs/jobs.md has an example' : `did you mean "${meant}"?`,
    );
  }
}
