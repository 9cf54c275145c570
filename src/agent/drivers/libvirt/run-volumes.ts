// The volumes of a domain that runs. What it has open is read from libvirt's live XML each time; a guest is asked to let go of a disk and
// never forced to. libvirt itself keeps no snapshots in a disk that a guest has open, so those are asked of its QEMU.

import { isRecord } from '../../../base/is-record.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import { lookAtQcow2 } from '../../volumes/qcow2-volume.ts';
import { snapshotTag } from '../../volumes/volume-files.ts';
import type { GuestVolume } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { RunVolumes } from '../guest-life/hypervisor.ts';
import { type Connection, isLost } from './connection.ts';
import { freeTarget, type LiveVolume, liveVolumes, volumeDisk } from './domain-volumes.ts';
import type { Domain, Libvirt } from './libvirt.ts';
import { writeXml } from './wire/xml.ts';

const lookEveryMs = 250;

export function createDomainVolumes({
  connection,
  domain,
  clock,
  patienceMs,
}: {
  readonly connection: Connection;
  readonly domain: Domain;
  readonly clock: Clock;
  /** How long a guest is given to let go of a disk. */
  readonly patienceMs: number;
}): RunVolumes {
  const ask = <Result>(what: string, act: (libvirt: Libvirt) => Promise<Result>): Promise<Result> =>
    told(what, () => connection.apart(act));
  const told = async <Result>(what: string, act: () => Promise<Result>): Promise<Result> => {
    try {
      return await act();
    } catch (error) {
      if (error instanceof DriverError) throw error;
      const said = describeError(error);
      if (isLost(error)) throw new DriverError('HypervisorFailed', `cannot ${what}: ${said}`, error);
      const full = /No space left|Disk quota exceeded/i.test(said);
      throw new DriverError(full ? 'DiskFull' : 'NotPossible', `cannot ${what}: libvirt says: ${said}`, error);
    }
  };
  /** libvirt knows that itself, so all guests of the host ask over one connection. */
  const live = async (): Promise<readonly LiveVolume[]> =>
    liveVolumes(await told('ask for volumes', () => connection.ask((libvirt) => libvirt.xml(domain))));
  const here = async (verb: string, volumeId: string): Promise<LiveVolume> => {
    const volume = (await live()).find((each) => each.volumeId === volumeId);
    if (volume !== undefined) return volume;
    throw new DriverError('NotPossible', `cannot ${verb} volume ${volumeId}: the guest does not have it open`);
  };

  const attach = async (volume: GuestVolume): Promise<void> => {
    const what = `give it volume "${volume.name}"`;
    await ask(what, async (libvirt) => {
      const xml = await libvirt.xml(domain);
      if (liveVolumes(xml).some(({ volumeId }) => volumeId === volume.volumeId)) return;
      const target = freeTarget(xml);
      if (target === undefined) throw new DriverError('NotPossible', `cannot ${what}: the guest has no place left`);
      await libvirt.attachDevice(domain, writeXml(volumeDisk(volume, target)));
    });
  };

  const detach = async (volumeId: string, signal: AbortSignal): Promise<void> => {
    const volume = (await live()).find((each) => each.volumeId === volumeId);
    if (volume === undefined) return;
    try {
      await ask(`take volume ${volumeId} away`, (libvirt) => libvirt.detachDevice(domain, volume.xml));
    } catch (error) {
      // Asked before, and still thinking about it; or gone since it was looked at.
      if (!/unplug|not found|no target device/i.test(describeError(error))) throw error;
    }
    const untilMs = clock.monotonicMs() + patienceMs;
    for (;;) {
      if (!(await live()).some((each) => each.volumeId === volumeId)) return;
      if (clock.monotonicMs() >= untilMs || signal.aborted) break;
      await sleep(clock, Math.min(lookEveryMs, patienceMs), signal);
    }
    throw new DriverError(
      'NotPossible',
      `the guest did not let go of volume ${volumeId} in time; unmount it there, and see that the guest runs a kernel that knows PCI hotplug; it is asked again, and loses the volume when it is stopped`,
    );
  };

  /** A command of QEMU's own protocol. */
  const execute = async (command: string, values: Readonly<Record<string, unknown>>): Promise<unknown> => {
    const line = JSON.stringify({ execute: command, arguments: values });
    const said: unknown = JSON.parse(await ask(`ask QEMU for ${command}`, (libvirt) => libvirt.command(domain, line)));
    if (isRecord(said) && !('error' in said)) return said['return'];
    const error = isRecord(said) && isRecord(said['error']) ? said['error']['desc'] : undefined;
    const why = typeof error === 'string' ? error : 'it refused';
    const full = /No space left|Disk quota exceeded/i.test(why);
    throw new DriverError(full ? 'DiskFull' : 'NotPossible', `cannot ${command}: QEMU says: ${why}`);
  };

  /** libvirt numbers its nodes anew with every disk. */
  const nodeOf = async (path: string): Promise<{ readonly name: string; readonly snapshots: readonly unknown[] }> => {
    const nodes = await execute('query-named-block-nodes', { flat: true });
    for (const node of Array.isArray(nodes) ? nodes : []) {
      if (!isRecord(node) || node['drv'] !== 'qcow2' || node['file'] !== path) continue;
      const { image, 'node-name': name } = node;
      if (typeof name !== 'string' || !isRecord(image)) continue;
      const snapshots = Array.isArray(image['snapshots']) ? image['snapshots'] : [];
      return { name, snapshots: snapshots.map((each: unknown) => isRecord(each) && each['name']) };
    }
    throw new DriverError('NotPossible', `QEMU does not have ${path} open`);
  };

  return {
    open: live,
    attach,
    detach,
    async grow(volumeId, sizeBytes) {
      const { path, target } = await here('grow', volumeId);
      const seen = await lookAtQcow2(path).catch((error: unknown) => {
        throw new DriverError('NotPossible', `cannot grow volume ${volumeId}: ${describeError(error)}`, error);
      });
      if (seen.found === 'volume' && seen.sizeBytes >= sizeBytes) return;
      await ask(`grow volume ${volumeId}`, (libvirt) => libvirt.resizeDisk(domain, target, sizeBytes));
    },
    async snapshot(volumeId, act, name) {
      const { path } = await here(`${act} a snapshot of`, volumeId);
      const tag = snapshotTag(name);
      const node = await nodeOf(path);
      if (node.snapshots.includes(tag) === (act === 'make')) return;
      const command = act === 'make' ? 'blockdev-snapshot-internal-sync' : 'blockdev-snapshot-delete-internal-sync';
      await execute(command, { device: node.name, name: tag });
    },
    onGone() {
      // libvirt is looked at while a guest is asked; one that lets go later is found at the next try.
    },
  };
}
