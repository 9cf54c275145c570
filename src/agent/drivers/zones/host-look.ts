// What of the zones driver's needs this host has: the programs, the ZFS file system, the link. Changes nothing.

import { describeError } from '../../../base/log.ts';
import type { Fingerprint } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import { command, type RunCommand } from './commands.ts';
import { consoleSocket, isPlainPath, zoneName } from './zone-config.ts';

/** Where guests go on this host: nothing of it can be guessed. */
export interface ZonesSettings {
  /** A ZFS file system of the driver's own, mounted: `rpool/berth`. Disks are volumes in it, and each zone a file system. */
  readonly dataset: string;
  /** The link over which guests get their own: `igb0`. */
  readonly globalNic: string;
}

export interface HostLook {
  fingerprint(): Promise<Fingerprint>;
  /** Where `dataset` is mounted. Throws `HypervisorFailed`. */
  mountPoint(): Promise<string>;
}

const longestName = zoneName(`inst_${'0'.repeat(26)}`);
/** `sun_path` has 108 bytes, the last of them zero (unix(4P)). */
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
