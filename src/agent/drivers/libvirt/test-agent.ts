// An agent to be killed: creates one guest by libvirt and says how far it is, one word a line. Used by tests only.

import { silentLogger } from '../../../base/log.ts';
import { seededPrng } from '../../../base/prng.ts';
import { system, systemClock } from '../../../base/system.ts';
import { testImageCache, testPortRange, testSpec } from '../qemu/test-host.ts';
import { createLibvirtDriver } from './driver.ts';

const [directory = '', imageDirectory = '', instanceId = '', uri = ''] = system.arguments();
const driver = createLibvirtDriver({
  directory,
  images: testImageCache(imageDirectory),
  clock: systemClock,
  prng: seededPrng(1),
  log: silentLogger,
  accelerator: 'tcg',
  portRange: testPortRange,
  network: 'user',
  uri,
});
const never = new AbortController().signal;
await driver.recover();
driver.watch(() => {
  for (const guest of driver.guests()) system.stdout.write(`${guest.phases.at(-1)?.name ?? guest.state}\n`);
}, never);
await driver.create(testSpec({ instanceId }), never);
system.stdout.write('created\n');
