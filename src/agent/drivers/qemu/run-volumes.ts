// The volumes of a running QEMU, over its control protocol. QEMU itself is asked each time which volumes it has open. A guest is asked to release
// a disk, and never forced to: a disk that is torn out loses its pending writes.

import { isRecord } from '../../../base/is-record.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { firstOf } from '../../../base/concurrency/first-of.ts';
import { describeError } from '../../../base/log.ts';
import { snapshotTag, volumeIdPattern } from '../../volumes/files/volume-files.ts';
import type { GuestVolume } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { OpenVolume, RunVolumes } from '../guest-life/hypervisor.ts';
import { type Qmp, QmpError, type QmpEvent } from './qmp.ts';
import { deviceId, nodeName, volumeDevice, volumeNode } from './volume-devices.ts';

export interface QemuVolumes extends RunVolumes {
  onEvent(event: QmpEvent): void;
}

/** QEMU writes tables; to grow a file or make a snapshot, it also writes the refcounts of the whole file. */
const changeTimeoutMs = 60_000;

interface QemuVolumesOptions {
  /** Throws when there is no connection. */
  readonly session: () => Qmp;
  readonly clock: Clock;
  /** How long a guest may take to release a disk. */
  readonly patienceMs: number;
  /** Makes the file of the volume accessible to QEMU. */
  readonly give: (volume: GuestVolume) => Promise<void>;
  /** That they are attached to. Absent: the root bus. */
  readonly bus?: string | undefined;
}

export function createQemuVolumes(options: QemuVolumesOptions): QemuVolumes {
  return new RunningVolumes(options);
}

class RunningVolumes implements QemuVolumes {
  readonly #options: QemuVolumesOptions;
  readonly #onDeleted = new Set<(device: string) => void>();
  #reportGone = (): void => {};

  constructor(options: QemuVolumesOptions) {
    this.#options = options;
  }

  async open(): Promise<OpenVolume[]> {
    const [found, devices] = [await this.#nodes(), await this.#query('query-block')];
    const attached = new Set(devices.map(nodeOfDevice));
    return found.map(({ volumeId, path, readOnly }) => ({
      volumeId,
      path,
      readOnly,
      attached: attached.has(nodeName(volumeId)),
    }));
  }

  async attach(volume: GuestVolume): Promise<void> {
    const what = `give it volume "${volume.name}"`;
    await this.#options.give(volume);
    if (!(await this.#nodes()).some(({ volumeId }) => volumeId === volume.volumeId))
      await this.#execute(what, 'blockdev-add', volumeNode(volume));
    try {
      await this.#execute(what, 'device_add', volumeDevice(volume, this.#options.bus));
    } catch (error) {
      await this.#closeNode(volume.volumeId).catch(() => {}); // the next attempt finds the open node, and closes it
      throw error;
    }
  }

  async detach(volumeId: string, signal: AbortSignal): Promise<void> {
    const seen = (await this.open()).find((each) => each.volumeId === volumeId);
    if (seen === undefined) return;
    if (seen.attached && !(await this.#unplug(volumeId, signal))) {
      throw new DriverError(
        'NotPossible',
        `the guest did not let go of volume ${volumeId} within ${this.#options.patienceMs} ms; unmount it there, and see that the guest runs a kernel that knows PCI hotplug; it is asked again, and loses the volume when it is stopped`,
      );
    }
    await this.#closeNode(volumeId);
  }

  async grow(volumeId: string, sizeBytes: number): Promise<void> {
    const node = await this.#nodeHere('grow', volumeId);
    if (node.sizeBytes >= sizeBytes) return;
    const values = { 'node-name': nodeName(volumeId), size: sizeBytes };
    await this.#execute(`grow volume ${volumeId}`, 'block_resize', values);
  }

  async snapshot(volumeId: string, act: 'make' | 'remove', name: string): Promise<void> {
    const tag = snapshotTag(name);
    const node = await this.#nodeHere(`${act} a snapshot of`, volumeId);
    if (node.snapshots.includes(tag) === (act === 'make')) return;
    const command = act === 'make' ? 'blockdev-snapshot-internal-sync' : 'blockdev-snapshot-delete-internal-sync';
    await this.#execute(`${act} snapshot "${name}"`, command, { device: nodeName(volumeId), name: tag });
  }

  onGone(listener: () => void): void {
    this.#reportGone = listener;
  }

  onEvent({ name, data }: QmpEvent): void {
    if (name !== 'DEVICE_DELETED' || typeof data['device'] !== 'string') return;
    const { device } = data;
    for (const listener of this.#onDeleted) listener(device);
    if (device.startsWith(deviceId('vol_'))) this.#reportGone();
  }

  /** True once the guest has released the disk. */
  async #unplug(volumeId: string, signal: AbortSignal): Promise<boolean> {
    const device = deviceId(volumeId);
    const gone = new AbortController();
    const listener = (deleted: string): void => {
      if (deleted === device) gone.abort();
    };
    this.#onDeleted.add(listener);
    const over = firstOf(gone.signal, signal);
    try {
      if ((await this.#askToRelease(volumeId)) === 'gone') gone.abort();
      if (!gone.signal.aborted) await sleep(this.#options.clock, this.#options.patienceMs, over.signal);
      return gone.signal.aborted || !(await this.open()).some((each) => each.volumeId === volumeId && each.attached);
    } finally {
      over.forget();
      this.#onDeleted.delete(listener);
    }
  }

  async #askToRelease(volumeId: string): Promise<'asked' | 'gone'> {
    try {
      await this.#options.session().execute('device_del', { id: deviceId(volumeId) });
      return 'asked';
    } catch (error) {
      const said = describeError(error);
      if (/not found/i.test(said)) return 'gone'; // the guest released it since the last look
      if (/unplug/i.test(said)) return 'asked'; // an earlier request is still pending
      throw new DriverError('NotPossible', `cannot take volume ${volumeId} away: QEMU says: ${said}`, error);
    }
  }

  #closeNode(volumeId: string): Promise<void> {
    return this.#execute(`close volume ${volumeId}`, 'blockdev-del', { 'node-name': nodeName(volumeId) });
  }

  async #execute(what: string, command: string, values: Readonly<Record<string, unknown>>): Promise<void> {
    try {
      await this.#options.session().execute(command, values, changeTimeoutMs);
    } catch (error) {
      const said = describeError(error);
      if (!(error instanceof QmpError && error.refused))
        throw new DriverError('HypervisorFailed', `cannot ${what}: ${said}`, error);
      const full = /No space left|Disk quota exceeded/i.test(said);
      throw new DriverError(full ? 'DiskFull' : 'NotPossible', `cannot ${what}: QEMU says: ${said}`, error);
    }
  }

  async #query(command: string, values?: Readonly<Record<string, unknown>>): Promise<readonly unknown[]> {
    try {
      const said = await this.#options.session().execute(command, values);
      return Array.isArray(said) ? said : [];
    } catch (error) {
      if (error instanceof QmpError)
        throw new DriverError('NotPossible', `cannot ask for volumes: ${error.message}`, error);
      throw error;
    }
  }

  async #nodes(): Promise<readonly Node[]> {
    const said = await this.#query('query-named-block-nodes', { flat: true });
    return said.flatMap((each) => nodeOf(each) ?? []);
  }

  async #nodeHere(verb: string, volumeId: string): Promise<Node> {
    const node = (await this.#nodes()).find((each) => each.volumeId === volumeId);
    if (node === undefined)
      throw new DriverError('NotPossible', `cannot ${verb} volume ${volumeId}: the guest does not have it open`);
    return node;
  }
}

interface Node {
  readonly volumeId: string;
  readonly path: string;
  readonly readOnly: boolean;
  readonly sizeBytes: number;
  /** Their names in the file. */
  readonly snapshots: readonly string[];
}

/** Undefined: the node is not a volume. */
function nodeOf(said: unknown): Node | undefined {
  if (!isRecord(said)) return undefined;
  const { 'node-name': name, file, ro, image } = said;
  if (typeof name !== 'string' || !volumeIdPattern.test(name) || !isRecord(image)) return undefined;
  const snapshots = Array.isArray(image['snapshots']) ? image['snapshots'] : [];
  return {
    volumeId: name,
    path: typeof file === 'string' ? file : '',
    readOnly: ro === true,
    sizeBytes: Number(image['virtual-size']),
    snapshots: snapshots.flatMap((each: unknown) =>
      isRecord(each) && typeof each['name'] === 'string' ? [each['name']] : [],
    ),
  };
}

function nodeOfDevice(said: unknown): unknown {
  if (!isRecord(said) || !isRecord(said['inserted'])) return undefined;
  return said['inserted']['node-name'];
}
