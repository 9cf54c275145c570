// `berth image add`: an image from a URL or a container registry.

import { Command } from 'commander';
import { containerTransport } from '../../../api/container-reference.ts';
import type { ImageSpec } from '../../../api/resources/image.ts';
import type { Cli } from '../../cli.ts';
import { meantContainer } from './container-source.ts';
import { attempting, usageError } from '../../exit-codes.ts';
import { type AmountOptions, amountsOf, imageFormats, imagePackings, oneOf, packingOf } from './image-options.ts';
import { type Format, printValue } from '../../print/output.ts';
import { outputOption } from '../../print/output-option.ts';
import { openSession } from '../../session.ts';
import { collect, parseInteger, parseLabels } from '../../options/units.ts';

interface AddOptions extends AmountOptions {
  readonly source: string;
  readonly mirror: readonly string[];
  readonly checksum?: string;
  readonly sizeBytes?: string;
  readonly pin?: true;
  readonly format?: string;
  readonly decompress?: string;
  readonly architecture?: string;
  readonly driver?: string;
  readonly alias: readonly string[];
  readonly cloudInit: boolean;
  readonly defaultUser?: string;
  readonly pull?: string;
  readonly preload?: true;
  readonly label: readonly string[];
  readonly output: Format;
}

const addedFormats = [...imageFormats, 'container'] as const;
const pullPolicies = ['IfNotPresent', 'Always'] as const;
const architectures = ['amd64', 'arm64'] as const;

export function addCommand(cli: Cli): Command {
  return new Command('add')
    .description('Add an image by its URL; hosts fetch it when it is needed')
    .argument('<name>')
    .requiredOption('--source <url>', 'http:, https:, oci: or file: URL, or docker://REGISTRY/NAME:TAG')
    .option('--checksum <sha256>', 'checksum of the file at the source: sha256:<64 hex digits>')
    .option('--mirror <url>', 'another URL, used when the source fails; may be repeated', collect, [])
    .option('--size-bytes <count>', 'size of the file at the source; any other size is refused')
    .option(
      '--format <format>',
      `${imageFormats.join(', ')} or container; default: container for docker://, else qcow2`,
    )
    .option('--decompress <packing>', `${imagePackings.join(', ')}; default: by the ending of the URL`)
    .option('--architecture <architecture>', `${architectures.join(' or ')}; default: amd64`)
    .option('--driver <driver>', 'run it only with this driver')
    .option('--alias <name>', 'another name for it; may be repeated', collect, [])
    .option('--no-cloud-init', 'attach no NoCloud seed')
    .option('--default-user <user>', "user for ssh, who gets the instance's keys")
    .option(
      '--pull <policy>',
      `of a container image: ${pullPolicies.join(' or ')} (pull its tag for each new instance)`,
    )
    .option('--preload', 'all matching hosts fetch it now')
    .option('--pin', 'hosts that have it keep it, even beyond the budget of their caches')
    .option('--cpus <count>', "for instances that do not set it; default: their pool's, else 4")
    .option('--memory <amount>', "for instances that do not set it; default: their pool's, else 8 GiB")
    .option('--disk <amount>', 'for instances that do not set it')
    .option('-l, --label <key=value>', 'label of the image; may be repeated', collect, [])
    .addOption(outputOption('list'))
    .action(async (name: string, options: AddOptions, command: Command) => {
      const { client } = await openSession(cli, command);
      const image = await attempting(`add image "${name}"`, () =>
        client.create('image', {
          metadata: { name, labels: parseLabels('--label', options.label) },
          spec: specOf(options),
        }),
      );
      if (options.output === 'json' || options.output === 'yaml') return printValue(cli, options.output, image);
      if (options.output === 'name') return void cli.stdout.write(`${image.metadata.name}\n`);
      cli.stdout.write(`image ${image.metadata.name} added\n`);
      if (options.cpus === undefined && options.memory === undefined) cli.stderr.write(`${defaultsHint}\n`);
    });
}

/** Many images need much less, and a small host cannot give this much. */
const defaultsHint =
  "its instances without a size get their pool's default, else 4 CPUs and 8 GiB memory; --cpus and --memory change this";

function specOf(options: AddOptions): Partial<ImageSpec> {
  const { format, architecture, driver, checksum } = options;
  const meant = meantContainer(options.source);
  if (meant !== undefined)
    throw usageError(
      `--source cannot be "${options.source}": it is not a URL; name a container image with its registry and its tag`,
      `write --source ${meant}`,
    );
  return {
    source: options.source,
    ...(checksum === undefined ? {} : { checksum: checksum.includes(':') ? checksum : `sha256:${checksum}` }),
    ...(options.mirror.length === 0 ? {} : { mirrors: [...options.mirror] }),
    ...(options.sizeBytes === undefined
      ? {}
      : { sizeBytes: parseInteger('--size-bytes', options.sizeBytes, { min: 1, max: Number.MAX_SAFE_INTEGER }) }),
    ...(options.pin === undefined ? {} : { pinned: true }),
    ...(format === undefined
      ? options.source.startsWith(containerTransport)
        ? { format: 'container' }
        : {}
      : { format: oneOf('--format', format, addedFormats) }),
    decompress:
      options.decompress === undefined
        ? packingOf(options.source)
        : oneOf('--decompress', options.decompress, imagePackings),
    ...(architecture === undefined ? {} : { architecture: oneOf('--architecture', architecture, architectures) }),
    ...(driver === undefined ? {} : { backend: driver }),
    aliases: [...options.alias],
    nocloud: options.cloudInit,
    ...(options.defaultUser === undefined ? {} : { defaultUser: options.defaultUser }),
    ...(options.pull === undefined ? {} : { pullPolicy: oneOf('--pull', options.pull, pullPolicies) }),
    preload: options.preload === true,
    defaults: amountsOf(options),
  };
}
