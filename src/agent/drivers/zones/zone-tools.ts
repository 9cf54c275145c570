// Configures, installs, boots, halts and removes zones with zoneadm(8) and zonecfg(8). Each step is taken only where the
// zone's state shows that it is missing, so that an interrupted sequence is completed by the next one.

import { join } from 'node:path';
import { DriverError } from '../../host/driver-error.ts';
import { guestFiles } from '../guest-life/guest-files.ts';
import { writeWhole } from '../../host/write-whole.ts';
import type { Machine } from '../guest-life/hypervisor.ts';
import { command, type RunCommand } from './commands.ts';
import { markOf, zoneCommands, zoneName } from './zone-config.ts';
import { mayRun, type Zone } from './zone-list.ts';
import type { ZoneWatch } from './zone-watch.ts';

const configFile = 'zone.cfg';
/** Makes a file system and some directories; long enough for slow disks. */
const installTimeoutMs = 300_000;

export interface ZoneToolsOptions {
  readonly run: RunCommand;
  readonly watch: ZoneWatch;
  readonly zonePath: (zone: string) => Promise<string>;
  /** The name of a guest's ZFS volume. */
  readonly diskOf: (instanceId: string) => string;
  readonly globalNic: string;
}

export class ZoneTools {
  readonly #options: ZoneToolsOptions;

  constructor(options: ZoneToolsOptions) {
    this.#options = options;
  }

  /** The uuid of the guest whose zone it is; undefined: the zone is not ours. */
  async ownerOf(what: string, zone: string): Promise<string | undefined> {
    return markOf(await this.#zonecfg(what, zone, ['export']));
  }

  async boot(what: string, zone: string): Promise<void> {
    await this.#zoneadm(what, zone, ['boot']);
  }

  async halt(what: string, zone: string): Promise<void> {
    await this.#zoneadm(what, zone, ['halt']);
  }

  /** The zone is then configured, installed, and not running, whatever existed before. */
  async make(what: string, machine: Machine): Promise<void> {
    const { record } = machine;
    const zone = zoneName(record.instanceId);
    let state = (await this.#options.watch.look()).get(zone)?.state;
    if (state === undefined) {
      await this.#configure(what, zone, machine);
      state = 'configured';
    } else if ((await this.ownerOf(what, zone)) !== record.uuid) {
      throw new DriverError(
        'HypervisorFailed',
        `${what}: the zone ${zone} is there and was made by somebody else; remove it (zoneadm(8), zonecfg(8))`,
      );
    }
    if (state === 'incomplete') {
      await this.#uninstall(what, zone); // an installation that was interrupted (zoneadm(8))
      state = 'configured';
    }
    if (state === 'configured') {
      await this.#zoneadm(what, zone, ['install'], installTimeoutMs);
      state = 'installed';
    }
    // Made ready by an interrupted boot: it holds no guest, and is halted for a complete boot.
    if (state !== 'installed') await this.halt(what, zone);
  }

  async remove(what: string, zone: Zone): Promise<void> {
    const { name } = zone;
    let { state } = zone;
    if (mayRun(zone)) {
      await this.halt(what, name);
      state = 'installed';
    }
    if (state !== 'configured') await this.#uninstall(what, name);
    await this.#zonecfg(what, name, ['delete', '-F']);
  }

  async #configure(what: string, zone: string, { record, directory }: Machine): Promise<void> {
    const { zonePath, diskOf, globalNic } = this.#options;
    const config = zoneCommands({
      zonePath: await zonePath(zone),
      uuid: record.uuid,
      cpus: record.cpus,
      memoryMiB: record.memoryMiB,
      disk: diskOf(record.instanceId),
      globalNic,
      ...(record.seeded ? { seed: join(directory, guestFiles.seed) } : {}),
    });
    await writeWhole(join(directory, configFile), config);
    await this.#zonecfg(what, zone, ['-f', join(directory, configFile)]);
  }

  async #uninstall(what: string, zone: string): Promise<void> {
    await this.#zoneadm(what, zone, ['uninstall', '-F'], installTimeoutMs);
  }

  async #zoneadm(what: string, zone: string, words: readonly string[], timeoutMs?: number): Promise<void> {
    await command(this.#options.run, {
      what,
      program: 'zoneadm',
      arguments: ['-z', zone, ...words],
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
  }

  #zonecfg(what: string, zone: string, words: readonly string[]): Promise<string> {
    return command(this.#options.run, { what, program: 'zonecfg', arguments: ['-z', zone, ...words] });
  }
}
