// The flags for room and location, shared by everything that is placed, including dry runs.

import type { Command } from 'commander';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { profileNames } from '../../api/resources/profile.ts';
import { usageError } from '../exit-codes.ts';
import {
  type DeviceOptions,
  devicesOf,
  type HostOptions,
  hostPlaceOf,
  withDeviceOptions,
  withHostOptions,
} from './host-options.ts';
import { type NeighbourOptions, neighboursOf, withNeighbourOptions } from './neighbour-options.ts';
import { collect, parseDiskGiB, parseInteger, parseLabels, parseMemoryMiB } from './units.ts';

export interface PlaceOptions extends NeighbourOptions, HostOptions, DeviceOptions {
  readonly size?: string;
  readonly cpus?: string;
  readonly memory?: string;
  readonly disk?: string;
  readonly resource: readonly string[];
  readonly pool?: string;
  readonly profile?: string;
  readonly driver?: string;
  readonly hostLabel: readonly string[];
}

/** Amounts. */
export function withRoomOptions(command: Command): Command {
  return withDeviceOptions(command)
    .option('-s, --size <size>', 'a named amount of resources: berth size ls')
    .option('-c, --cpus <count>', 'virtual CPUs')
    .option('-m, --memory <amount>', '512MiB, 1GiB')
    .option('-d, --disk <amount>', '10GiB; 0: as large as the image')
    .option(
      '--resource <class=count>',
      'amount of another resource class: CUSTOM_LICENSE=1; may be repeated',
      collect,
      [],
    );
}

/** Location. */
export function withPlaceOptions(command: Command): Command {
  return withHostOptions(withNeighbourOptions(command))
    .option('--pool <pool>', 'only on hosts of this pool')
    .option('--host-label <key=value>', 'only on hosts with this label; may be repeated', collect, [])
    .option('--driver <driver>', 'only with this driver; berth driver ls shows them')
    .option('--profile <profile>', `scoring profile: ${profileNames.join(', ')}`);
}

type Place = Pick<
  InstanceSpec,
  'size' | 'cpus' | 'memoryMiB' | 'diskGiB' | 'resources' | 'gpus' | 'numaCells' | 'placement'
>;

/** The flags as a part of a spec. */
export function placeOf(options: PlaceOptions): Place {
  const { profile, pool, driver } = options;
  return {
    ...(options.size === undefined ? {} : { size: options.size }),
    ...(options.cpus === undefined ? {} : { cpus: parseInteger('--cpus', options.cpus, { min: 1, max: 1024 }) }),
    ...(options.memory === undefined ? {} : { memoryMiB: parseMemoryMiB(options.memory) }),
    ...(options.disk === undefined ? {} : { diskGiB: parseDiskGiB(options.disk) }),
    ...(options.resource.length === 0 ? {} : { resources: parseResources(options.resource) }),
    ...devicesOf(options),
    placement: {
      ...(profile === undefined ? {} : { profile: oneOf('--profile', profile, profileNames) }),
      ...(pool === undefined ? {} : { pool }),
      ...(driver === undefined ? {} : { driver }),
      ...(options.hostLabel.length === 0 ? {} : { hostLabels: parseLabels('--host-label', options.hostLabel) }),
      ...neighboursOf(options),
      ...hostPlaceOf(options),
    },
  };
}

function parseResources(pairs: readonly string[]): Record<string, number> {
  const counts = Object.entries(parseLabels('--resource', pairs)).map(([resourceClass, count]): [string, number] => [
    resourceClass,
    parseInteger(`--resource ${resourceClass}`, count, { min: 1, max: 2 ** 31 - 1 }),
  ]);
  return Object.fromEntries(counts);
}

export function oneOf<T extends string>(flag: string, text: string, known: readonly T[]): T {
  const found = known.find((word) => word === text);
  if (!found) throw usageError(`${flag} cannot be "${text}"`, `choose one of: ${known.join(', ')}`);
  return found;
}
