// bhyve zones of illumos as hypervisor: every machine is a zone of its own, recognized by the mark in its configuration. It
// touches no zone without that mark.

import { basename, join } from 'node:path';
import { gibibyte } from '../../../base/bytes.ts';
import type { Accelerator } from '../../../api/agent-protocol.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { Fingerprint, GuestSpec } from '../driver.ts';
import { guestFiles } from '../guest-life/guest-files.ts';
import type { Hypervisor, Machine, Run, RunEnd } from '../guest-life/hypervisor.ts';
import { consoleSize, tailText } from '../guest-life/ways-in/console-log.ts';
import { command, type RunCommand } from './commands.ts';
import { ConsoleRecorder } from './console.ts';
import { GuestDisks } from './guest-disks.ts';
import { createHostLook, type HostLook, type ZonesSettings } from './host-look.ts';
import { endedRun, superviseZone } from './run.ts';
import { ZfsDataset } from './zfs-dataset.ts';
import { consoleSocket, cpusMax, zoneMacAddress, zoneName } from './zone-config.ts';
import { mayRun, type Zone } from './zone-list.ts';
import { ZoneTools } from './zone-tools.ts';
import { ZoneWatch } from './zone-watch.ts';

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

const sightTriesMax = 3;

export class ZonesHypervisor implements Hypervisor {
  readonly name = 'zones';
  readonly #options: ZonesOptions;
  readonly #everyMs: number;
  readonly #confirmMs: number;
  readonly #watch: ZoneWatch;
  readonly #host: HostLook;
  readonly #disks: GuestDisks;
  readonly #tools: ZoneTools;
  /** By the path of the log. */
  readonly #recorders = new Map<string, ConsoleRecorder>();

  constructor(options: ZonesOptions) {
    const { settings, run, clock, log, root, qemuImg } = options;
    this.#options = options;
    this.#everyMs = options.lookEveryMs ?? 5000;
    this.#confirmMs = options.confirmMs ?? 2000;
    this.#watch = new ZoneWatch({ run, clock, log, everyMs: this.#everyMs });
    this.#host = createHostLook({ run, settings, root });
    this.#disks = new GuestDisks({ run, dataset: new ZfsDataset(run, settings.dataset), root, qemuImg, log });
    this.#tools = new ZoneTools({
      run,
      watch: this.#watch,
      zonePath: (zone) => this.#zonePath(zone),
      diskOf: (instanceId) => this.#disks.nameOf(instanceId),
      globalNic: settings.globalNic,
    });
  }

  fingerprint(): Promise<Fingerprint> {
    return this.#host.fingerprint();
  }

  /** There is no choice: bhyve runs guests on the processor or not at all. */
  chosenAccelerator(): Promise<Accelerator> {
    return Promise.resolve('none');
  }

  async assertSight(): Promise<void> {
    await this.#watch.look();
    await this.#host.mountPoint();
  }

  refuse({ instanceId, ports, cpus }: GuestSpec): DriverError | undefined {
    if (ports.length > 0)
      return new DriverError(
        'HypervisorFailed',
        `cannot publish the ports of ${instanceId}: "ports" is not empty, and the driver zones has no address translation; leave it empty: the guest has an address of its own on the network of ${this.#options.settings.globalNic}`,
      );
    if (cpus > cpusMax)
      return new DriverError(
        'HypervisorFailed',
        `cannot give ${instanceId} ${cpus} CPUs: "cpus" is ${cpusMax} at most under bhyve`,
      );
    return undefined;
  }

  makeDisk({ uuid, image, spec, signal }: Parameters<NonNullable<Hypervisor['makeDisk']>>[0]): Promise<void> {
    const { instanceId, diskGiB } = spec;
    return this.#disks.ensure({ instanceId, uuid, image, sizeBytes: diskGiB * gibibyte, signal });
  }

  macAddress(uuid: string): string {
    return zoneMacAddress(uuid);
  }

  /** When the host booted, in seconds since 1970 (kstat(8)). */
  hostBootId(): Promise<string> {
    return command(this.#options.run, {
      what: 'cannot learn when this host booted',
      program: 'kstat',
      arguments: ['-p', 'unix:0:system_misc:boot_time'],
    });
  }

  async dropLogStart(path: string, lengthBytes: number): Promise<{ readonly ok: boolean; readonly output: string }> {
    await this.#recorders.get(path)?.dropStart(lengthBytes); // without a recorder the guest has ended, and its log no longer grows
    return { ok: true, output: '' };
  }

  async start(machine: Machine): Promise<Run> {
    const { instanceId } = machine.record;
    const zone = zoneName(instanceId);
    const what = `cannot start ${instanceId}`;
    await this.#tools.make(what, machine);
    try {
      await this.#tools.boot(what, zone);
      return await this.#supervise(machine, mayRun((await this.#watch.look()).get(zone)));
    } catch (error) {
      // It may have booted all the same, and a guest whose start failed must not run. A zone that does not run cannot be halted: that error is logged only.
      await this.#tools
        .halt(what, zone)
        .catch((refusal: unknown) =>
          this.#options.log.debug('a zone that did not boot is not halted', { zone, error: describeError(refusal) }),
        );
      throw error;
    }
  }

  async find(machine: Machine, thorough: boolean): Promise<Run | null> {
    const { record, directory } = machine;
    const zone = zoneName(record.instanceId);
    const found = await this.#seeGuest(`cannot find ${record.instanceId}`, zone);
    if (mayRun(found.zone)) {
      // A zone with another mark is not ours, and a zone that is only ready has no guest yet.
      return found.owner !== record.uuid || found.zone?.state === 'ready' ? null : this.#supervise(machine, true);
    }
    // It ended while no agent ran. The end of an earlier boot of the host, and of an interrupted start, is reported elsewhere.
    const { state, hostBootId, bootOffset } = record;
    if (thorough || state !== 'running' || hostBootId !== (await this.hostBootId())) return null;
    const spoke = (await consoleSize(join(directory, guestFiles.console))) > bootOffset;
    const detail = `zone ${zone} was ${found.zone?.state ?? 'gone'} when the agent came back`;
    return endedRun({ cause: spoke ? 'guest-shutdown' : 'other', detail });
  }

  async running({ instanceId }: { readonly instanceId: string }): Promise<string | undefined> {
    const zone = zoneName(instanceId);
    return mayRun((await this.#watch.look()).get(zone)) ? `zone ${zone} runs` : undefined;
  }

  async purge({ directory, uuid }: { readonly directory: string; readonly uuid?: string }): Promise<void> {
    const instanceId = basename(directory);
    const what = `cannot remove ${instanceId}`;
    const zone = (await this.#watch.look()).get(zoneName(instanceId));
    if (zone !== undefined) {
      const owner = await this.#tools.ownerOf(what, zone.name);
      if (owner !== undefined && (uuid === undefined || owner === uuid)) await this.#tools.remove(what, zone);
      else
        this.#options.log.error('a zone with the name of a guest is not ours, and is left alone', { zone: zone.name });
    }
    await this.#disks.remove({ instanceId, ...(uuid === undefined ? {} : { uuid }) });
  }

  async startError({ record, directory }: Machine, end: RunEnd): Promise<DriverError> {
    const words = await this.lastWords(directory);
    const said = words === '' ? '' : `: ${words}`;
    return new DriverError('HypervisorFailed', `cannot start ${record.instanceId}: ${end.detail}${said}`);
  }

  /** From the file to which the brand writes bhyve's messages (its own notes on troubleshooting). */
  async lastWords(directory: string): Promise<string> {
    const path = join(await this.#zonePath(zoneName(basename(directory))), 'root/tmp/init.log');
    const text = await tailText(path, 2000).catch(() => ''); // messages are helpful, not required
    return text.split('\n').slice(-5).join('; ');
  }

  /** Nothing to trim: init.log is overwritten at each boot, and its writer holds it open. */
  trimLogs(): Promise<void> {
    return Promise.resolve();
  }

  async #zonePath(zone: string): Promise<string> {
    return join(await this.#host.mountPoint(), zone);
  }

  /** Tries several times: a guest that is not found would run without supervision. */
  async #seeGuest(what: string, name: string): Promise<{ readonly zone?: Zone; readonly owner?: string }> {
    for (let tries = 1; ; tries++) {
      try {
        const zone = (await this.#watch.look()).get(name);
        const owner = mayRun(zone) ? await this.#tools.ownerOf(what, name) : undefined;
        return { ...(zone === undefined ? {} : { zone }), ...(owner === undefined ? {} : { owner }) };
      } catch (error) {
        if (tries === sightTriesMax) throw error;
        await sleep(this.#options.clock, Math.min(this.#confirmMs, this.#everyMs));
      }
    }
  }

  async #supervise({ record, directory, log }: Machine, seen: boolean): Promise<Run> {
    const { run, clock, prng } = this.#options;
    const zone = zoneName(record.instanceId);
    const logPath = join(directory, guestFiles.console);
    const socketPath = join(await this.#zonePath(zone), 'root', consoleSocket);
    const spokeBefore = (await consoleSize(logPath)) > record.bootOffset;
    const console = new ConsoleRecorder({ socketPath, logPath, clock, prng, log });
    this.#recorders.set(logPath, console);
    const supervised = superviseZone({
      ...{ zone, run, clock, log, console, seen },
      watch: this.#watch,
      everyMs: this.#everyMs,
      confirmMs: this.#confirmMs,
      spoke: () => spokeBefore || console.heardBytes() > 0,
    });
    void supervised.ended.then(() => {
      if (this.#recorders.get(logPath) === console) this.#recorders.delete(logPath);
    });
    return supervised;
  }
}
