// An agent to be killed: creates one guest in a folder and says how far it is, one word a line. Used by tests only.

import { seededPrng } from '../../../base/prng.ts';
import { silentLogger } from '../../../base/log.ts';
import { system, systemClock } from '../../../base/system.ts';
import { createQemuDriver } from './driver.ts';
import { testImageCache, testSpec, testUsers } from './test-host.ts';

const [directory = '', imageDirectory = '', instanceId = ''] = system.arguments();
const driver = createQemuDriver({
  directory,
  images: testImageCache(imageDirectory),
  clock: systemClock,
  prng: seededPrng(1),
  log: silentLogger,
  accelerator: 'tcg',
  ...testUsers,
});
const never = new AbortController().signal;
await driver.recover();
driver.watch(() => {
  for (const guest of driver.guests()) system.stdout.write(`${guest.phases.at(-1)?.name ?? guest.state}\n`);
}, never);
await driver.create(testSpec({ instanceId }), never);
system.stdout.write('created\n');
