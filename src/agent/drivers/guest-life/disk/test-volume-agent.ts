// An agent to be killed: finds the guest of an earlier one, gives it volumes, and says "changed" with each change that it wrote down. Used by
// tests only.

import { silentLogger } from '../../../../base/log.ts';
import { seededPrng } from '../../../../base/prng.ts';
import { system, systemClock } from '../../../../base/system.ts';
import type { GuestVolume } from '../../driver.ts';
import { createLibvirtDriver } from '../../libvirt/driver.ts';
import { createQemuDriver } from '../../qemu/driver.ts';
import { testImageCache, testUsers } from '../../qemu/test-host.ts';

const [directory = '', imageDirectory = '', instanceId = '', volumes = '[]', uri = ''] = system.arguments();
const options = {
  directory,
  images: testImageCache(imageDirectory),
  clock: systemClock,
  prng: seededPrng(1),
  log: silentLogger,
  accelerator: 'tcg',
} as const;
const driver =
  uri === ''
    ? createQemuDriver({ ...options, ...testUsers })
    : createLibvirtDriver({ ...options, network: 'user', uri });
const never = new AbortController().signal;
await driver.recover();
let told = '';
driver.watch(() => {
  const text = JSON.stringify(driver.guests().map((guest) => guest.volumes));
  if (text !== told) system.stdout.write('changed\n');
  told = text;
}, never);
const wanted: GuestVolume[] = JSON.parse(volumes);
await driver.volumes?.set(instanceId, wanted, never);
system.stdout.write('done\n');
