// bhyve zones of illumos as hypervisor: every machine a zone of its own, known by the mark in its configuration. Each step is taken only
// where the zone's state says that it is missing, so that one that was interrupted is finished by the next.

import { join, basename } from 'node:path';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';
import { DriverError } from '../../host/driver-error.ts';
import { consoleSize, tailText } from '../guest-life/ways-in/console-log.ts';
import { guestFiles } from '../guest-life/guest-files.ts';
import { writeWhole } from '../../host/write-whole.ts';
import type { Hypervisor, Machine, Run } from '../guest-life/hypervisor.ts';
import { command, type RunCommand } from './commands.ts';
import { type ConsoleRecorder, recordConsole } from './console.ts';
import { createHostLook, type ZonesSettings } from './host-look.ts';
import { endedRun, superviseZone } from './run.ts';
import { createVolumes } from './volumes.ts';
import { consoleSocket, cpusMax, markOf, zoneCommands, zoneMacAddress, zoneName } from './zone-config.ts';
import { mayRun, type Zone } from './zone-list.ts';
import { createZoneWatch } from './zone-watch.ts';

export interface ZonesOptions {
  readonly settings: ZonesSettings;
  readonly run: RunCommand;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  readonly qemuImg: string;
  readonly root: () => Promise<string>;
  /** How often the states of zones are looked at. Default 5 s. */
  readonly lookEveryMs?: number;
  /** Default 2 s: a zone that its guest reboots is back within less. */
  readonly confirmMs?: number;
}

const gibibyte = 1024 ** 3;
const configFile = 'zone.cfg';
const sightTriesMax = 3;
/** Makes a file system and some directories; slow disks are given time. */
const installTimeoutMs = 300_000;

export function createZones(options: ZonesOptions): Hypervisor {
  const { settings, run, clock, prng, log, root } = options;
  const everyMs = options.lookEveryMs ?? 5000;
  const confirmMs = options.confirmMs ?? 2000;
  const watch = createZoneWatch({ run, clock, log, everyMs });
  const host = createHostLook({ run, settings, root });
  const volumes = createVolumes({ run, dataset: settings.dataset, root, qemuImg: options.qemuImg, log });
  /** By the path of the log. */
  const recorders = new Map<string, ConsoleRecorder>();

  const zonePath = async (zone: string): Promise<string> => join(await host.mountPoint(), zone);
  const zoneadm = (what: string, zone: string, words: readonly string[], timeoutMs?: number): Promise<string> =>
    command(run, {
      what,
      program: 'zoneadm',
      arguments: ['-z', zone, ...words],
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
  const zonecfg = (what: string, zone: string, words: readonly string[]): Promise<string> =>
    command(run, { what, program: 'zonecfg', arguments: ['-z', zone, ...words] });
  /** The uuid of the guest that a zone is of; undefined: it is none of ours. */
  const ownerOf = async (what: string, zone: string): Promise<string | undefined> =>
    markOf(await zonecfg(what, zone, ['export']));

  /** Tried again: a guest that is not found is one that nobody looks after. */
  const seeGuest = async (what: string, name: string): Promise<{ zone?: Zone; owner?: string }> => {
    for (let tries = 1; ; tries++) {
      try {
        const zone = (await watch.look()).get(name);
        const owner = mayRun(zone) ? await ownerOf(what, name) : undefined;
        return { ...(zone === undefined ? {} : { zone }), ...(owner === undefined ? {} : { owner }) };
      } catch (error) {
        if (tries === sightTriesMax) throw error;
        await sleep(clock, Math.min(confirmMs, everyMs));
      }
    }
  };

  const supervise = async ({ record, directory, log: own }: Machine, seen: boolean): Promise<Run> => {
    const zone = zoneName(record.instanceId);
    const logPath = join(directory, guestFiles.console);
    const socketPath = join(await zonePath(zone), 'root', consoleSocket);
    const spokeBefore = (await consoleSize(logPath)) > record.bootOffset;
    const console = recordConsole({ socketPath, logPath, clock, prng, log: own });
    recorders.set(logPath, console);
    const supervised = superviseZone({
      ...{ zone, run, watch, clock, log: own, console, seen, everyMs },
      spoke: () => spokeBefore || console.heardBytes() > 0,
      confirmMs,
    });
    void supervised.ended.then(() => {
      if (recorders.get(logPath) === console) recorders.delete(logPath);
    });
    return supervised;
  };

  /** Configured, installed, and not running: whatever of it was there before. */
  const makeZone = async (what: string, { record, directory }: Machine): Promise<void> => {
    const zone = zoneName(record.instanceId);
    let state = (await watch.look()).get(zone)?.state;
    if (state === undefined) {
      const config = zoneCommands({
        zonePath: await zonePath(zone),
        uuid: record.uuid,
        cpus: record.cpus,
        memoryMiB: record.memoryMiB,
        disk: volumes.nameOf(record.instanceId),
        globalNic: settings.globalNic,
        ...(record.seeded ? { seed: join(directory, guestFiles.seed) } : {}),
      });
      await writeWhole(join(directory, configFile), config);
      await zonecfg(what, zone, ['-f', join(directory, configFile)]);
      state = 'configured';
    } else if ((await ownerOf(what, zone)) !== record.uuid) {
      throw new DriverError(
        'HypervisorFailed',
        `${what}: the zone ${zone} is there and was made by somebody else; remove it (zoneadm(8), zonecfg(8))`,
      );
    }
    if (state === 'incomplete') {
      await zoneadm(what, zone, ['uninstall', '-F'], installTimeoutMs); // an installation that was interrupted (zoneadm(8))
      state = 'configured';
    }
    if (state === 'configured') {
      await zoneadm(what, zone, ['install'], installTimeoutMs);
      state = 'installed';
    }
    // Made ready by a boot that was interrupted: it holds no guest, and is taken back for a whole boot.
    if (state !== 'installed') await zoneadm(what, zone, ['halt']);
  };

  const bootedAt = (): Promise<string> =>
    // When the host booted, in seconds since 1970 (kstat(8)).
    command(run, {
      what: 'cannot learn when this host booted',
      program: 'kstat',
      arguments: ['-p', 'unix:0:system_misc:boot_time'],
    });

  /** Where the brand writes what bhyve says (its own notes on troubleshooting). */
  const lastWords = async (directory: string): Promise<string> => {
    const path = join(await zonePath(zoneName(basename(directory))), 'root/tmp/init.log');
    const text = await tailText(path, 2000).catch(() => ''); // it is a help, no more
    return text.split('\n').slice(-5).join('; ');
  };

  const removeZone = async (what: string, zone: Zone): Promise<void> => {
    const { name } = zone;
    let { state } = zone;
    if (mayRun(zone)) {
      await zoneadm(what, name, ['halt']);
      state = 'installed';
    }
    if (state !== 'configured') await zoneadm(what, name, ['uninstall', '-F'], installTimeoutMs);
    await zonecfg(what, name, ['delete', '-F']);
  };

  return {
    name: 'zones',
    fingerprint: () => host.fingerprint(),
    chosenAccelerator: async () => 'none', // there is nothing to choose: bhyve runs guests on the processor or not at all
    async assertSight() {
      await watch.look();
      await host.mountPoint();
    },
    refuse({ instanceId, ports, cpus }) {
      if (ports.length > 0)
        return new DriverError(
          'HypervisorFailed',
          `cannot publish the ports of ${instanceId}: "ports" is not empty, and the driver zones has no address translation; leave it empty: the guest has an address of its own on the network of ${settings.globalNic}`,
        );
      if (cpus > cpusMax)
        return new DriverError(
          'HypervisorFailed',
          `cannot give ${instanceId} ${cpus} CPUs: "cpus" is ${cpusMax} at most under bhyve`,
        );
      return undefined;
    },
    makeDisk: ({ uuid, image, spec, signal }) =>
      volumes.ensureDisk({
        instanceId: spec.instanceId,
        uuid,
        image,
        sizeBytes: spec.diskGiB * gibibyte,
        signal,
      }),
    macAddress: zoneMacAddress,
    hostBootId: bootedAt,
    async dropLogStart(path, lengthBytes) {
      await recorders.get(path)?.dropStart(lengthBytes); // without one the guest has ended, and its log no longer grows
      return { ok: true, output: '' };
    },
    async start(machine) {
      const { instanceId } = machine.record;
      const zone = zoneName(instanceId);
      const what = `cannot start ${instanceId}`;
      await makeZone(what, machine);
      try {
        await zoneadm(what, zone, ['boot']);
        return await supervise(machine, mayRun((await watch.look()).get(zone)));
      } catch (error) {
        // It may have booted all the same, and what failed must not run. One that does not run cannot be halted, and says so.
        await zoneadm(what, zone, ['halt']).catch((refusal: unknown) =>
          log.debug('a zone that did not boot is not halted', { zone, error: describeError(refusal) }),
        );
        throw error;
      }
    },
    async find(machine, thorough) {
      const { record, directory } = machine;
      const zone = zoneName(record.instanceId);
      const found = await seeGuest(`cannot find ${record.instanceId}`, zone);
      if (mayRun(found.zone)) {
        // Somebody else's is none of ours, and a zone made ready has no guest yet.
        return found.owner !== record.uuid || found.zone?.state === 'ready' ? null : supervise(machine, true);
      }
      // It ended while nobody looked; but of a boot that is over, and of a start that was interrupted, others tell.
      const { state, hostBootId, bootOffset } = record;
      if (thorough || state !== 'running' || hostBootId !== (await bootedAt())) return null;
      const spoke = (await consoleSize(join(directory, guestFiles.console))) > bootOffset;
      const detail = `zone ${zone} was ${found.zone?.state ?? 'gone'} when the agent came back`;
      return endedRun({ cause: spoke ? 'guest-shutdown' : 'other', detail });
    },
    async running({ instanceId }) {
      const zone = zoneName(instanceId);
      return mayRun((await watch.look()).get(zone)) ? `zone ${zone} runs` : undefined;
    },
    async purge({ directory, uuid }) {
      const instanceId = basename(directory);
      const what = `cannot remove ${instanceId}`;
      const zone = (await watch.look()).get(zoneName(instanceId));
      if (zone !== undefined) {
        const owner = await ownerOf(what, zone.name);
        if (owner !== undefined && (uuid === undefined || owner === uuid)) await removeZone(what, zone);
        else log.error('a zone with the name of a guest is not ours, and is left alone', { zone: zone.name });
      }
      await volumes.removeDisk({ instanceId, ...(uuid === undefined ? {} : { uuid }) });
    },
    async startError({ record, directory }, end) {
      const words = await lastWords(directory);
      const said = words === '' ? '' : `: ${words}`;
      return new DriverError('HypervisorFailed', `cannot start ${record.instanceId}: ${end.detail}${said}`);
    },
    lastWords,
    trimLogs: async () => {}, // init.log begins anew with each boot, and its writer holds it open
  };
}
