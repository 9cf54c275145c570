// A driver of QEMU or libvirt for each test of a suite, with the tiny image, which has a Linux.

import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import type { Driver } from '../src/agent/drivers/driver.ts';
import { makeLibvirtTestHost } from '../src/agent/drivers/libvirt/test-host.ts';
import { startLibvirt, type TestLibvirt } from '../src/agent/drivers/libvirt/test-libvirt.ts';
import { makeQemuTestHost, testUsers } from '../src/agent/drivers/qemu/test-host.ts';
import { tinyImage, tinyImages } from './tiny-image.ts';

/** Its fields are those of the test that runs. */
export class TinyGuests {
  host!: Awaited<ReturnType<typeof makeQemuTestHost | typeof makeLibvirtTestHost>>;
  driver!: Driver;
  daemon: TestLibvirt | undefined;

  /** How the driver is opened, besides its images. */
  get users() {
    return this.daemon === undefined ? testUsers : {};
  }
}

/** To be called in a suite: its guests are removed after each test. */
export function tinyGuests(kind: 'QEMU' | 'libvirt'): TinyGuests {
  const at = new TinyGuests();
  beforeAll(async () => {
    await tinyImage();
    if (kind === 'libvirt') at.daemon = await startLibvirt();
  });
  afterAll(() => at.daemon?.stop());
  beforeEach(async () => {
    at.host = at.daemon === undefined ? await makeQemuTestHost() : await makeLibvirtTestHost(at.daemon);
    const images = await tinyImages(join(at.host.directory, '..'));
    at.driver = at.host.open({ images, ...at.users });
    await at.driver.recover();
  });
  afterEach(async () => {
    for (const guest of at.driver.guests()) await at.driver.remove(guest.instanceId);
    await at.driver.close();
    await at.host.dispose();
  });
  return at;
}
