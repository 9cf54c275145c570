// The Debian 12 image with its real cloud-init: booted by hand, and run by Berth with QEMU as a user would.

import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuiltImage, buildImage } from '../src/agent/images/build/build.ts';
import { bootImage } from '../src/agent/images/test-boot.ts';
import { reached, runDebianUnderBerth } from './debian-guests.ts';

describe('the Debian 12 image', () => {
  let directory = '';
  let image: BuiltImage;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-debian-'));
    await chmod(directory, 0o711); // guests run as users of their own
    image = await buildImage('debian-12', { directory });
  }, 600_000);
  afterAll(() => rm(directory, { recursive: true, force: true }));

  it("boots to cloud-init's end with its name, address, own keys, grown disk and script, and obeys the power button", async () => {
    const userData = `#!/bin/sh
echo "script: on $(hostname), root of $(df -BM --output=size / | tail -1 | tr -d ' M') MiB"
echo "script: machine $(cat /etc/machine-id)"
echo "script: failed units: $(systemctl list-units --failed --no-legend | wc -l)"
ls /etc/ssh/ssh_host_*_key
`;
    const guest = await bootImage(image.path, {
      memoryMiB: 512,
      diskSize: '4G',
      seed: { hostname: 'deb-one', userData },
    });
    try {
      await guest.line(/Cloud-init v\. \S+ finished at .*DataSourceNoCloud/);
      expect(guest.console()).toMatch(/ci-info: \|\s+eth0\s+\|\s+True\s+\|\s+10\.0\.2\.15/);
      expect(guest.console()).toContain('script: on deb-one');
      expect(Number(/root of (\d+) MiB/.exec(guest.console())?.[1])).toBeGreaterThan(3500);
      expect(guest.console()).toMatch(/script: machine [0-9a-f]{32}/);
      expect(guest.console()).toContain('script: failed units: 0');
      expect(guest.console()).toContain('/etc/ssh/ssh_host_ed25519_key');
      guest.pressPowerButton();
      await guest.ended;
    } finally {
      await guest.stop();
    }
  }, 600_000);

  it(
    `runs under Berth and QEMU: ${reached}`,
    () => runDebianUnderBerth({ image, directory, driver: 'qemu' }),
    1_200_000,
  );
});
