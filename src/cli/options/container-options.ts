// The flags of a container: its command and environment; and the file for what flags cannot express, such as several
// containers.

import type { Command } from 'commander';
import type { Container, Env } from '../../api/resources/container.ts';
import { type InstanceSpec, InstanceSpec as InstanceSpecSchema } from '../../api/resources/instance.ts';
import { nearest } from '../../api/nearest.ts';
import { isRecord } from '../../base/is-record.ts';
import type { Cli } from '../cli.ts';
import { usageError } from '../exit-codes.ts';
import { type ImageCredentialOptions, withImageCredentialOption } from './image-credential-options.ts';
import { readTextFile } from './read-file.ts';
import { collect } from './units.ts';
import { parseYaml } from './yaml-file.ts';

export interface ContainerOptions extends ImageCredentialOptions {
  readonly command: readonly string[];
  readonly arg: readonly string[];
  readonly env: readonly string[];
  readonly envSecret: readonly string[];
  readonly envFile: readonly string[];
  readonly mount: readonly string[];
  readonly file?: string;
}

export function withContainerOptions(command: Command): Command {
  return withImageCredentialOption(command)
    .option('--command <word>', 'for a container image: replaces its entrypoint; repeat it for each word', collect, [])
    .option('--arg <word>', 'for a container image: replaces its command; repeat it for each word', collect, [])
    .option(
      '-e, --env <name=value>',
      'for a container image; NAME alone reads the value from this environment, so that process lists do not show it; may be repeated',
      collect,
      [],
    )
    .option('--env-file <file>', 'lines of NAME=VALUE; - reads standard input; may be repeated', collect, [])
    .option(
      '--env-secret <name=secret/key>',
      'a variable with a value of a secret, which only the guest gets; may be repeated',
      collect,
      [],
    )
    .option(
      '--mount <source:path>',
      'for a container: a volume, or a folder of the host that its pool allows; SOURCE:PATH:ro for read-only; may be repeated',
      collect,
      [],
    )
    .option('-f, --file <file>', 'YAML with more fields of the spec, such as containers; flags override it');
}

/** The one container described by flags; empty without such flags. */
export async function containersOf(
  cli: Cli,
  options: ContainerOptions & { readonly cpus?: string },
): Promise<Partial<Pick<InstanceSpec, 'containers'>>> {
  const env = await envOf(cli, options);
  const { command, arg, mount } = options;
  const cpus = partOfCpu(options.cpus);
  if (command.length + arg.length + mount.length + Object.keys(env).length === 0 && cpus === undefined) return {};
  const main: Container = {
    name: 'main',
    ...(command.length === 0 ? {} : { command: [...command] }),
    ...(arg.length === 0 ? {} : { args: [...arg] }),
    env,
    ports: [],
    ...(cpus === undefined ? {} : { cpus }),
    ...(mount.length === 0 ? {} : { mounts: mount.map(parseMount) }),
  };
  return { containers: [main] };
}

/** `/srv/data:/data:ro`, or `data:/data`. */
function parseMount(text: string): NonNullable<Container['mounts']>[number] {
  const [, source, path, how] = /^(\/[^:]*|[a-z0-9][a-z0-9-]*):(\/[^:]*)(:ro|:rw)?$/.exec(text) ?? [];
  if (source === undefined || path === undefined)
    throw usageError(
      `--mount cannot be "${text}"`,
      'write --mount VOLUME:/data, /srv/data:/data, or /srv/data:/data:ro',
    );
  const mount = source.startsWith('/') ? { hostPath: source, path } : { volume: source, path };
  return how === ':ro' ? { ...mount, readOnly: true } : mount;
}

/** The volumes that mounts name: the instance has them. */
export function volumesOfMounts({ mount }: Pick<ContainerOptions, 'mount'>): NonNullable<InstanceSpec['volumes']> {
  return mount.flatMap((text) => {
    const { volume, readOnly } = parseMount(text);
    return volume === undefined ? [] : [readOnly ? { name: volume, readOnly } : { name: volume }];
  });
}

/** `0.25`: only containers have parts of CPUs. */
export function partOfCpu(cpus: string | undefined): number | undefined {
  return cpus !== undefined && /^\d*\.\d{1,3}$/.test(cpus) && !Number.isInteger(Number(cpus))
    ? Number(cpus)
    : undefined;
}

/** The content of the file; the server validates it. */
export async function fileSpecOf(cli: Cli, path: string | undefined): Promise<Readonly<Record<string, unknown>>> {
  if (path === undefined) return {};
  const value = await parseYaml(await readTextFile(cli, path, { what: 'the spec', bytesMax: 1024 * 1024 }), path);
  if (!isRecord(value))
    throw usageError(`${path} has no fields of an instance`, 'write fields of its spec: containers: [...]');
  for (const field of Object.keys(value)) {
    if (Object.hasOwn(InstanceSpecSchema.properties, field)) continue;
    const meant = nearest(field, Object.keys(InstanceSpecSchema.properties));
    throw usageError(
      `${path}: an instance has no field "${field}"`,
      meant === undefined ? 'docs/containers.md has an example' : `did you mean "${meant}"?`,
    );
  }
  return value;
}

/** The environment that `--env` and `--env-file` name. */
export async function envOf(
  cli: Cli,
  { env, envFile, envSecret }: Pick<ContainerOptions, 'env' | 'envFile' | 'envSecret'>,
): Promise<Env> {
  const found = new Map<string, Env[string]>();
  for (const path of envFile) {
    const text = await readTextFile(cli, path, { what: 'an environment', bytesMax: 1024 * 1024 });
    for (const [i, line] of text.split(/\r?\n/).entries()) {
      if (line.trim() === '' || line.startsWith('#')) continue;
      const at = line.indexOf('=');
      // Without the line itself: it may be a secret.
      if (at < 1) throw usageError(`${path}: line ${i + 1} is not NAME=VALUE`);
      found.set(line.slice(0, at), line.slice(at + 1));
    }
  }
  for (const pair of env) {
    const at = pair.indexOf('=');
    if (at > 0) found.set(pair.slice(0, at), pair.slice(at + 1));
    else if (at === 0) throw usageError('--env names no variable', 'write --env NAME=VALUE');
    else {
      const value = cli.environment[pair];
      if (value === undefined)
        throw usageError(`--env ${pair}: this environment has no such variable`, 'write --env NAME=VALUE');
      found.set(pair, value);
    }
  }
  for (const pair of envSecret) {
    const [, name, secret, key] = /^([^=]+)=([^/]+)\/(.+)$/.exec(pair) ?? [];
    if (name === undefined || secret === undefined || key === undefined)
      throw usageError(`--env-secret cannot be "${pair}"`, 'write --env-secret NAME=SECRET/KEY');
    found.set(name, { secret, key });
  }
  return Object.fromEntries(found);
}
