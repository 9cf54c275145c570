// The ZFS volumes in the driver's own file system, as zfs(8) lists them. Ours bear a mark, a user property (zfs(8), "User
// Properties"); a caller must destroy no volume without it.

import { DriverError } from '../../host/driver-error.ts';
import { command, type RunCommand } from './commands.ts';

export interface Volume {
  readonly sizeBytes: number;
  /** Of a snapshot: whether it has clones. */
  readonly cloned: boolean;
  readonly guest?: string;
  readonly image?: string;
}

export type ZfsVolumes = ReadonlyMap<string, Volume>;

export const marks = { guest: 'berth:guest', image: 'berth:image' } as const;

/** Whole mebibytes: a multiple of every block size of volumes, and what dd(8) fills up to. */
export const unitBytes = 1024 ** 2;

export const wholeUnits = (bytes: number): number => Math.ceil(bytes / unitBytes) * unitBytes;

/** The snapshot that exists when an image's volume is complete. */
export const readyOf = (volume: string): string => `${volume}@ready`;

export class ZfsDataset {
  readonly name: string;
  readonly #run: RunCommand;

  /** `name`: the ZFS file system that is ours, `rpool/berth`. */
  constructor(run: RunCommand, name: string) {
    this.#run = run;
    this.name = name;
  }

  zfs(what: string, words: readonly string[], signal?: AbortSignal): Promise<string> {
    const call = { what, program: 'zfs', arguments: words, ...(signal === undefined ? {} : { signal }) };
    return command(this.#run, call);
  }

  async list(what: string): Promise<ZfsVolumes> {
    const columns = `name,volsize,clones,${marks.guest},${marks.image}`;
    return parseVolumes(
      await this.zfs(what, ['list', '-H', '-p', '-r', '-t', 'volume,snapshot', '-o', columns, this.name]),
    );
  }

  /** With its snapshots. */
  async destroy(what: string, volume: string): Promise<void> {
    await this.zfs(what, ['destroy', '-r', volume]);
  }
}

/** Volumes and their snapshots by name, from tab-separated columns with `-` for no value (zfs(8), "list"). */
export function parseVolumes(text: string): ZfsVolumes {
  const volumes = new Map<string, Volume>();
  for (const line of text.split('\n')) {
    const [name, size, clones, guest, image] = line.split('\t');
    if (name === undefined || size === undefined || clones === undefined || image === undefined) continue;
    volumes.set(name, {
      sizeBytes: Number(size) || 0, // a snapshot has none in older releases
      cloned: clones !== '-' && clones !== '',
      ...(guest === undefined || guest === '-' ? {} : { guest }),
      ...(image === '-' ? {} : { image }),
    });
  }
  return volumes;
}

export const foreign = (what: string, name: string): DriverError =>
  new DriverError(
    'HypervisorFailed',
    `${what}: the volume ${name} is there and was made by somebody else; remove or rename it`,
  );
