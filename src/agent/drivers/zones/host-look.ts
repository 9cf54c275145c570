// Checks whether this host has what the zones driver needs: the programs, the ZFS file system, the link. Changes nothing.

import { describeError } from '../../../base/log.ts';
import type { Fingerprint } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import { command, type RunCommand } from './commands.ts';
import { consoleSocket, isPlainPath, zoneName } from './zone-config.ts';

/** Where guests are placed on this host. There are no defaults. */
export interface ZonesSettings {
  /** A mounted ZFS file system for the driver alone: `rpool/berth`. Disks are volumes in it, and each zone is a file system. */
  readonly dataset: string;
  /** The link on which the guests' own links are created: `igb0`. */
  readonly globalNic: string;
}

export interface HostLook {
  fingerprint(): Promise<Fingerprint>;
  /** The mount point of `dataset`. Throws `HypervisorFailed`. */
  mountPoint(): Promise<string>;
}

const longestName = zoneName(`inst_${'0'.repeat(26)}`);
/** `sun_path` has 108 bytes, and the last one is zero (unix(4P)). */
const socketPathMax = 107;

export function createHostLook({
  run,
  settings,
  root,
}: {
  readonly run: RunCommand;
  readonly settings: ZonesSettings;
  readonly root: () => Promise<string>;
}): HostLook {
  let mounted: Promise<string> | undefined;

  const lookForMount = async (): Promise<string> => {
    const what = `cannot use the ZFS file system ${settings.dataset} (zones.dataset)`;
    const path = await command(run, {
      what,
      program: 'zfs',
      arguments: ['list', '-H', '-o', 'mountpoint', settings.dataset],
    });
    if (!path.startsWith('/'))
      throw unusable(
        `${what}: its mountpoint is "${path}"; give it one: zfs set mountpoint=/berth ${settings.dataset}`,
      );
    if (!isPlainPath(path))
      throw unusable(`${what}: ${JSON.stringify(path)} has characters that zones cannot take; mount it elsewhere`);
    const excess = `${path}/${longestName}/root/${consoleSocket}`.length - socketPathMax;
    if (excess > 0)
      throw unusable(
        `${what}: ${path} is too long by ${excess} characters for the guests' consoles; mount it elsewhere`,
      );
    return path;
  };
  const mountPoint = (): Promise<string> => {
    mounted ??= lookForMount().catch((error: unknown) => {
      mounted = undefined;
      throw error;
    });
    return mounted;
  };

  return {
    mountPoint,
    async fingerprint() {
      const what = 'cannot run bhyve zones on this host';
      try {
        await command(run, { what, program: 'zoneadm', arguments: ['list', '-cp'] });
        mounted = undefined; // it may have been mounted elsewhere since
        await mountPoint();
        const link = ['show-link', '-p', '-o', 'link', settings.globalNic];
        await command(run, { what: `${what}: zones.globalNic`, program: 'dladm', arguments: link });
        if (!isPlainPath(await root()))
          throw unusable(`${what}: dataDirectory has characters that zones cannot take; choose another`);
        const version = await command(run, { what, program: 'uname', arguments: ['-v'] });
        return { available: true, version };
      } catch (error) {
        return { available: false, reason: error instanceof DriverError ? error.message : describeError(error) };
      }
    },
  };
}

const unusable = (message: string): DriverError => new DriverError('HypervisorFailed', message);
