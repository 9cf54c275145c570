// The volumes of a running domain. The open volumes are read from libvirt's live XML each time. A guest is asked to release a disk, and never
// forced to. libvirt itself makes no snapshots in a disk that a guest has open, so QEMU is asked for them.

import { isRecord } from '../../../base/is-record.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import { lookAtQcow2 } from '../../volumes/files/qcow2-volume.ts';
import { snapshotTag } from '../../volumes/files/volume-files.ts';
import type { GuestVolume } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { RunVolumes } from '../guest-life/hypervisor.ts';
import { type Connection, isLost } from './connection.ts';
import { freeTarget, type LiveVolume, liveVolumes, volumeDisk } from './domain/domain-volumes.ts';
import type { Domain, Libvirt } from './libvirt.ts';
import { writeXml } from './wire/xml.ts';

const lookEveryMs = 250;

interface DomainVolumesOptions {
  readonly connection: Connection;
  readonly domain: Domain;
  readonly clock: Clock;
  /** How long a guest may take to release a disk. */
  readonly patienceMs: number;
}

export function createDomainVolumes(options: DomainVolumesOptions): RunVolumes {
  return new DomainVolumes(options);
}

class DomainVolumes implements RunVolumes {
  readonly #options: DomainVolumesOptions;

  constructor(options: DomainVolumesOptions) {
    this.#options = options;
  }

  /** libvirt answers this itself, without QEMU, so it is asked over the shared connection. */
  async open(): Promise<readonly LiveVolume[]> {
    const { connection, domain } = this.#options;
    return liveVolumes(await explained('ask for volumes', () => connection.ask((libvirt) => libvirt.xml(domain))));
  }

  async attach(volume: GuestVolume): Promise<void> {
    const { domain } = this.#options;
    const what = `give it volume "${volume.name}"`;
    await this.#apart(what, async (libvirt) => {
      const xml = await libvirt.xml(domain);
      if (liveVolumes(xml).some(({ volumeId }) => volumeId === volume.volumeId)) return;
      const target = freeTarget(xml);
      if (target === undefined) throw new DriverError('NotPossible', `cannot ${what}: the guest has no place left`);
      await libvirt.attachDevice(domain, writeXml(volumeDisk(volume, target)));
    });
  }

  async detach(volumeId: string, signal: AbortSignal): Promise<void> {
    const { domain } = this.#options;
    const volume = (await this.open()).find((each) => each.volumeId === volumeId);
    if (volume === undefined) return;
    try {
      await this.#apart(`take volume ${volumeId} away`, (libvirt) => libvirt.detachDevice(domain, volume.xml));
    } catch (error) {
      // An earlier request is still pending, or the guest released the disk since the last look.
      if (!/unplug|not found|no target device/i.test(describeError(error))) throw error;
    }
    if (await this.#isReleased(volumeId, signal)) return;
    throw new DriverError(
      'NotPossible',
      `the guest did not let go of volume ${volumeId} in time; unmount it there, and see that the guest runs a kernel that knows PCI hotplug; it is asked again, and loses the volume when it is stopped`,
    );
  }

  /** Waits for the guest, for a limited time. */
  async #isReleased(volumeId: string, signal: AbortSignal): Promise<boolean> {
    const { clock, patienceMs } = this.#options;
    const untilMs = clock.monotonicMs() + patienceMs;
    for (;;) {
      if (!(await this.open()).some((each) => each.volumeId === volumeId)) return true;
      if (clock.monotonicMs() >= untilMs || signal.aborted) return false;
      await sleep(clock, Math.min(lookEveryMs, patienceMs), signal);
    }
  }

  async grow(volumeId: string, sizeBytes: number): Promise<void> {
    const { path, target } = await this.#liveVolume('grow', volumeId);
    const seen = await lookAtQcow2(path).catch((error: unknown) => {
      throw new DriverError('NotPossible', `cannot grow volume ${volumeId}: ${describeError(error)}`, error);
    });
    if (seen.found === 'volume' && seen.sizeBytes >= sizeBytes) return;
    const { domain } = this.#options;
    await this.#apart(`grow volume ${volumeId}`, (libvirt) => libvirt.resizeDisk(domain, target, sizeBytes));
  }

  async snapshot(volumeId: string, act: 'make' | 'remove', name: string): Promise<void> {
    const { path } = await this.#liveVolume(`${act} a snapshot of`, volumeId);
    const tag = snapshotTag(name);
    const node = await this.#nodeOf(path);
    if (node.snapshots.includes(tag) === (act === 'make')) return;
    const command = act === 'make' ? 'blockdev-snapshot-internal-sync' : 'blockdev-snapshot-delete-internal-sync';
    await this.#execute(command, { device: node.name, name: tag });
  }

  /** Reports nothing: a disk that the guest releases late is found at the next attempt. */
  onGone(): void {}

  async #liveVolume(verb: string, volumeId: string): Promise<LiveVolume> {
    const volume = (await this.open()).find((each) => each.volumeId === volumeId);
    if (volume !== undefined) return volume;
    throw new DriverError('NotPossible', `cannot ${verb} volume ${volumeId}: the guest does not have it open`);
  }

  #apart<Result>(what: string, act: (libvirt: Libvirt) => Promise<Result>): Promise<Result> {
    return explained(what, () => this.#options.connection.apart(act));
  }

  /** Executes a command of QEMU's own protocol. */
  async #execute(command: string, values: Readonly<Record<string, unknown>>): Promise<unknown> {
    const { domain } = this.#options;
    const line = JSON.stringify({ execute: command, arguments: values });
    const text = await this.#apart(`ask QEMU for ${command}`, (libvirt) => libvirt.command(domain, line));
    const said: unknown = JSON.parse(text);
    if (isRecord(said) && !('error' in said)) return said['return'];
    const error = isRecord(said) && isRecord(said['error']) ? said['error']['desc'] : undefined;
    const why = typeof error === 'string' ? error : 'it refused';
    throw new DriverError(isFull(why) ? 'DiskFull' : 'NotPossible', `cannot ${command}: QEMU says: ${why}`);
  }

  /** Found by path, because libvirt renumbers its nodes with every disk. */
  async #nodeOf(path: string): Promise<{ readonly name: string; readonly snapshots: readonly unknown[] }> {
    const nodes = await this.#execute('query-named-block-nodes', { flat: true });
    for (const node of Array.isArray(nodes) ? nodes : []) {
      if (!isRecord(node) || node['drv'] !== 'qcow2' || node['file'] !== path) continue;
      const { image, 'node-name': name } = node;
      if (typeof name !== 'string' || !isRecord(image)) continue;
      const snapshots = Array.isArray(image['snapshots']) ? image['snapshots'] : [];
      return { name, snapshots: snapshots.map((each: unknown) => isRecord(each) && each['name']) };
    }
    throw new DriverError('NotPossible', `QEMU does not have ${path} open`);
  }
}

/** Turns what libvirt throws into a `DriverError`. */
async function explained<Result>(what: string, act: () => Promise<Result>): Promise<Result> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof DriverError) throw error;
    const said = describeError(error);
    if (isLost(error)) throw new DriverError('HypervisorFailed', `cannot ${what}: ${said}`, error);
    throw new DriverError(isFull(said) ? 'DiskFull' : 'NotPossible', `cannot ${what}: libvirt says: ${said}`, error);
  }
}

const isFull = (said: string): boolean => /No space left|Disk quota exceeded/i.test(said);
