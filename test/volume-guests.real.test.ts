// Volumes as guests see them: real QEMU, by hand and by libvirt, the tiny image's Linux, and disks that come and go while it runs.

import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../src/base/system.ts';
import { followLog } from '../src/agent/access/guest-log.ts';
import type { ImageCache } from '../src/agent/images/image-cache.ts';
import { untilGuest } from '../src/agent/drivers/conformance.ts';
import type { Driver, GuestSpec, GuestVolume, GuestVolumes } from '../src/agent/drivers/driver.ts';
import { DriverError } from '../src/agent/host/driver-error.ts';
import type { GuestUsers } from '../src/agent/host/guest-user.ts';
import { makeQemuTestHost, testSpec, testUsers } from '../src/agent/drivers/qemu/test-host.ts';
import { makeLibvirtTestHost } from '../src/agent/drivers/libvirt/test-host.ts';
import { startLibvirt, type TestLibvirt, whyNoLibvirt } from '../src/agent/drivers/libvirt/test-libvirt.ts';
import type { VolumeFiles } from '../src/agent/volumes/files/volume-files.ts';
import { tinyImage, tinyImages } from './tiny-image.ts';

const never = new AbortController().signal;
const mebibyte = 1024 * 1024;
const [original, copy] = [`vol_${'0'.repeat(25)}1`, `vol_${'0'.repeat(25)}2`];

/** Says which disks there are, whenever that changes: serial number, sectors, whether read-only, first letters; then signs those it may write to. */
const script = `#!/bin/sh
(
  last=
  while :; do
    now= told=
    for disk in /sys/block/vd*; do
      serial=$(cat $disk/serial 2>/dev/null)
      [ -n "$serial" ] || continue
      device=/dev/$(basename $disk)
      letters=$(head -c 5 $device | tr -c a-z -)
      now="$now $serial:$(cat $disk/size):$(cat $disk/ro):$letters"
      [ "$(cat $disk/ro)" = 1 ] || told="$told $device"
    done
    [ "$now" = "$last" ] || echo "disks:$now."
    last=$now
    for device in $told; do
      [ "$(head -c 5 $device)" = "$(hostname)" ] || hostname | dd of=$device bs=5 count=1 conv=notrunc,fsync 2>/dev/null
    done
    sleep 0.2
  done
) </dev/null &
`;

interface TestHost {
  readonly directory: string;
  readonly volumeFiles: VolumeFiles;
  open(change: {
    readonly images: ImageCache;
    readonly detachPatienceMs?: number;
    readonly users?: GuestUsers;
  }): Driver;
  dispose(): Promise<void>;
}

describe('guests of QEMU', () => {
  findTheirVolumes('QEMU');
});
const why = whyNoLibvirt();
describe.skipIf(why !== undefined)(`guests of libvirt${why ? ` (${why})` : ''}`, () => {
  findTheirVolumes('libvirt');
});

function findTheirVolumes(kind: 'QEMU' | 'libvirt'): void {
  let daemon: TestLibvirt | undefined;
  let host: TestHost;
  let driver: Driver;
  beforeAll(async () => {
    await tinyImage();
    if (kind === 'libvirt') daemon = await startLibvirt();
  });
  afterAll(() => daemon?.stop());
  beforeEach(async () => {
    host = daemon === undefined ? await makeQemuTestHost() : await makeLibvirtTestHost(daemon);
    driver = host.open({
      images: await tinyImages(join(host.directory, '..')),
      detachPatienceMs: 30_000,
      ...(daemon === undefined ? testUsers : {}),
    });
    await driver.recover();
  });
  afterEach(async () => {
    for (const { instanceId } of driver.guests()) await driver.remove(instanceId);
    await driver.close();
    await host.dispose();
  });

  const spec = (number: number, hostname: string, volumes: readonly GuestVolume[] = []): GuestSpec =>
    testSpec({
      instanceId: `inst_${'0'.repeat(25)}${number}`,
      name: hostname,
      hostname,
      imageName: 'tiny',
      memoryMiB: 128,
      userData: script,
      ...(volumes.length === 0 ? {} : { volumes }),
    });
  const volume = (volumeId: string, name: string, readOnly = false): GuestVolume => ({
    volumeId,
    name,
    readOnly,
    path: host.volumeFiles.pathOf(volumeId),
  });
  const hands = (): GuestVolumes => driver.volumes ?? expect.unreachable();
  /** Resolves when the guest has said that it has exactly these disks. */
  const says = async ({ instanceId }: GuestSpec, disks: string): Promise<void> => {
    let text = '';
    const range = { instanceId, offset: 0, follow: true };
    for await (const { data } of followLog({ driver, clock: systemClock, range }, never)) {
      text += new TextDecoder().decode(data);
      if (text.includes(`disks:${disks}.`)) return;
    }
    throw new Error(`the guest never said "${disks}":\n${text}`);
  };

  it('find volumes by name, write to them, let go of them, and find what others wrote', async () => {
    const { volumeFiles } = host;
    await volumeFiles.make({ volumeId: original, sizeBytes: 16 * mebibyte }, never);
    const ann = spec(1, 'annie');
    await driver.create(ann, never);
    await untilGuest(driver, ann.instanceId, (seen) => seen?.ready === true);
    await hands().set(ann.instanceId, [volume(original, 'data')], never);
    await says(ann, ` data:${32 * 1024}:0:-----`);
    await says(ann, ` data:${32 * 1024}:0:annie`);
    await hands().grow(ann.instanceId, original, 32 * mebibyte);
    await says(ann, ` data:${64 * 1024}:0:annie`);
    await hands().snapshot(ann.instanceId, original, 'make', 'by-annie');
    await hands().set(ann.instanceId, [], never);
    await says(ann, '');

    const bob = spec(2, 'bobby', [volume(original, 'data')]);
    await driver.create(bob, never);
    await says(bob, ` data:${64 * 1024}:0:annie`);
    await says(bob, ` data:${64 * 1024}:0:bobby`);
    const twice = hands().set(ann.instanceId, [volume(original, 'data')], never);
    await expect(twice).rejects.toBeInstanceOf(DriverError); // the file is locked
    expect(driver.guests().find((each) => each.instanceId === ann.instanceId)?.volumes).toBeUndefined();

    const source = { volumeId: original, snapshot: 'by-annie' };
    await volumeFiles.make({ volumeId: copy, sizeBytes: 16 * mebibyte, source }, never);
    await hands().set(ann.instanceId, [volume(copy, 'a-copy', true)], never);
    await says(ann, ` a-copy:${64 * 1024}:1:annie`);
  }, 240_000); // two machines boot without acceleration
}
