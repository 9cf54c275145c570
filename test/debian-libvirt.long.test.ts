// The Debian 12 image run by Berth with libvirt as Debian installs it.

import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { startLibvirt, type TestLibvirt, whyNoLibvirt } from '../src/agent/drivers/libvirt/test-libvirt.ts';
import { type BuiltImage, buildImage } from '../src/agent/images/build/build.ts';
import { reached, runDebianUnderBerth } from './debian-guests.ts';

const reason = whyNoLibvirt();

describe.skipIf(reason !== undefined)(`the Debian 12 image${reason === undefined ? '' : ` (${reason})`}`, () => {
  let directory = '';
  let image: BuiltImage;
  let daemon: TestLibvirt;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-debian-'));
    await chmod(directory, 0o711); // libvirt runs guests as a user of its own
    image = await buildImage('debian-12', { directory });
    daemon = await startLibvirt({ asInstalled: true });
  }, 600_000);
  afterAll(async () => {
    await daemon?.stop();
    await rm(directory, { recursive: true, force: true });
  });

  it(
    `runs under Berth and libvirt: ${reached}`,
    () =>
      runDebianUnderBerth({
        image,
        directory,
        driver: 'libvirt',
        agent: { libvirtUri: `qemu:///system?socket=${daemon.path}`, libvirtNetwork: 'user' },
      }),
    1_200_000,
  );
});
