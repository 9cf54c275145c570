// The volumes of a QEMU that runs, by its control protocol. What it has open is asked of QEMU itself each time; a guest is asked to let go
// of a disk and never forced to, because a disk that is torn out loses what was on its way to it.

import { isRecord } from '../../../base/is-record.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { firstOf } from '../../../base/work/first-of.ts';
import { describeError } from '../../../base/log.ts';
import { snapshotTag, volumeIdPattern } from '../../volumes/volume-files.ts';
import type { GuestVolume } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { OpenVolume, RunVolumes } from '../guest-life/hypervisor.ts';
import { type Qmp, QmpError, type QmpEvent } from './qmp.ts';
import { deviceId, nodeName, volumeDevice, volumeNode } from './volume-devices.ts';

export interface QemuVolumes extends RunVolumes {
  onEvent(event: QmpEvent): void;
}

/** QEMU writes tables, and for growth and snapshots the refcounts of the whole file. */
const changeTimeoutMs = 60_000;

export function createQemuVolumes({
  session,
  clock,
  patienceMs,
  give,
}: {
  /** Throws when there is no connection. */
  readonly session: () => Qmp;
  readonly clock: Clock;
  /** How long a guest is given to let go of a disk. */
  readonly patienceMs: number;
  /** Makes that QEMU can open it. */
  readonly give: (volume: GuestVolume) => Promise<void>;
}): QemuVolumes {
  const onDeleted = new Set<(device: string) => void>();
  let tellGone = (): void => {};

  const execute = async (what: string, command: string, values: Readonly<Record<string, unknown>>): Promise<void> => {
    try {
      await session().execute(command, values, changeTimeoutMs);
    } catch (error) {
      const said = describeError(error);
      if (!(error instanceof QmpError && error.refused))
        throw new DriverError('HypervisorFailed', `cannot ${what}: ${said}`, error);
      const full = /No space left|Disk quota exceeded/i.test(said);
      throw new DriverError(full ? 'DiskFull' : 'NotPossible', `cannot ${what}: QEMU says: ${said}`, error);
    }
  };

  const nodes = async (): Promise<readonly Node[]> => {
    const said = await ask('query-named-block-nodes', { flat: true });
    return said.flatMap((each) => nodeOf(each) ?? []);
  };

  const ask = async (command: string, values?: Readonly<Record<string, unknown>>): Promise<readonly unknown[]> => {
    try {
      const said = await session().execute(command, values);
      return Array.isArray(said) ? said : [];
    } catch (error) {
      if (error instanceof QmpError)
        throw new DriverError('NotPossible', `cannot ask for volumes: ${error.message}`, error);
      throw error;
    }
  };

  const open = async (): Promise<OpenVolume[]> => {
    const [found, devices] = [await nodes(), await ask('query-block')];
    const attached = new Set(devices.map(nodeOfDevice));
    return found.map(({ volumeId, path, readOnly }) => ({
      volumeId,
      path,
      readOnly,
      attached: attached.has(nodeName(volumeId)),
    }));
  };

  const closeNode = (volumeId: string): Promise<void> =>
    execute(`close volume ${volumeId}`, 'blockdev-del', { 'node-name': nodeName(volumeId) });

  /** True once the guest has let go. */
  const unplug = async (volumeId: string, signal: AbortSignal): Promise<boolean> => {
    const device = deviceId(volumeId);
    const gone = new AbortController();
    const listener = (deleted: string): void => {
      if (deleted === device) gone.abort();
    };
    onDeleted.add(listener);
    const over = firstOf(gone.signal, signal);
    try {
      await session().execute('device_del', { id: device });
    } catch (error) {
      const said = describeError(error);
      // Asked before, and still thinking about it; or gone since it was looked at.
      if (/not found/i.test(said)) gone.abort();
      else if (!/unplug/i.test(said))
        throw new DriverError('NotPossible', `cannot take volume ${volumeId} away: QEMU says: ${said}`, error);
    }
    try {
      if (!gone.signal.aborted) await sleep(clock, patienceMs, over.signal);
      return gone.signal.aborted || !(await open()).some((each) => each.volumeId === volumeId && each.attached);
    } finally {
      over.forget();
      onDeleted.delete(listener);
    }
  };

  return {
    open,
    async attach(volume) {
      const what = `give it volume "${volume.name}"`;
      await give(volume);
      if (!(await nodes()).some(({ volumeId }) => volumeId === volume.volumeId))
        await execute(what, 'blockdev-add', volumeNode(volume));
      try {
        await execute(what, 'device_add', volumeDevice(volume));
      } catch (error) {
        await closeNode(volume.volumeId).catch(() => {}); // what is left open is seen, and closed, at the next try
        throw error;
      }
    },
    async detach(volumeId, signal) {
      const seen = (await open()).find((each) => each.volumeId === volumeId);
      if (seen === undefined) return;
      if (seen.attached && !(await unplug(volumeId, signal))) {
        throw new DriverError(
          'NotPossible',
          `the guest did not let go of volume ${volumeId} within ${patienceMs} ms; unmount it there, and see that the guest runs a kernel that knows PCI hotplug; it is asked again, and loses the volume when it is stopped`,
        );
      }
      await closeNode(volumeId);
    },
    async grow(volumeId, sizeBytes) {
      const node = await nodeHere('grow', volumeId);
      if (node.sizeBytes >= sizeBytes) return;
      const values = { 'node-name': nodeName(volumeId), size: sizeBytes };
      await execute(`grow volume ${volumeId}`, 'block_resize', values);
    },
    async snapshot(volumeId, act, name) {
      const tag = snapshotTag(name);
      const node = await nodeHere(`${act} a snapshot of`, volumeId);
      if (node.snapshots.includes(tag) === (act === 'make')) return;
      const command = act === 'make' ? 'blockdev-snapshot-internal-sync' : 'blockdev-snapshot-delete-internal-sync';
      await execute(`${act} snapshot "${name}"`, command, { device: nodeName(volumeId), name: tag });
    },
    onGone(listener) {
      tellGone = listener;
    },
    onEvent({ name, data }) {
      if (name !== 'DEVICE_DELETED' || typeof data['device'] !== 'string') return;
      const { device } = data;
      for (const each of onDeleted) each(device);
      if (device.startsWith(deviceId('vol_'))) tellGone();
    },
  };

  async function nodeHere(verb: string, volumeId: string): Promise<Node> {
    const node = (await nodes()).find((each) => each.volumeId === volumeId);
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
  /** What they are called in the file. */
  readonly snapshots: readonly string[];
}

/** Undefined: another node than a volume's. */
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
