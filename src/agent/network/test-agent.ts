// An agent's network, and the driver of QEMU or libvirt upon it, in a process of its own, so that it can stand in a network namespace and be killed. Takes calls as
// lines of JSON and answers each with one. Used by tests only.

import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { describeError } from '../../base/log.ts';
import { seededPrng } from '../../base/prng.ts';
import { randomSecret, system, systemClock, systemLogger } from '../../base/system.ts';
import type { GuestSpec } from '../drivers/driver.ts';
import { untilGuest } from '../drivers/conformance.ts';
import { makeFolder } from '../agent-folders.ts';
import { createLibvirtDriver } from '../drivers/libvirt/driver.ts';
import { createQemuDriver } from '../drivers/qemu/driver.ts';
import { createImageCache } from '../images/create-image-cache.ts';
import { createHttpGet } from '../images/fetch/http-get.ts';
import { createBridgeNetwork } from './bridge-network.ts';
import type { PlacedGuest } from './host-network.ts';
import { createNatNetwork } from './nat-network.ts';

const [directory = '', bridge = '', imageRoot = '/', libvirtSocket = '', subnet = ''] = system.arguments();
await makeFolder(join(directory, 'images'), { passable: true });
const clock = systemClock;
const log = systemLogger('warn');
const network =
  bridge === ''
    ? createNatNetwork({
        subnet,
        denied: ['192.0.2.3'],
        metadataTokens: 'optional',
        owner: directory,
        runDirectory: join(directory, 'run'),
        clock,
        log,
        randomSecret,
      })
    : createBridgeNetwork({ bridge, clock });
const options = {
  directory: join(directory, 'guests'),
  images: createImageCache({
    directory: join(directory, 'images'),
    fileRoots: [imageRoot],
    guestRoots: async () => [join(directory, 'guests')],
    get: createHttpGet({ privateAddresses: 'deny' }),
    clock,
    prng: seededPrng(2),
    log,
  }),
  clock,
  prng: seededPrng(1),
  log,
  accelerator: 'tcg',
} as const;
const driver =
  libvirtSocket === ''
    ? createQemuDriver({ ...options, network, users: { first: 1_900_000_000, count: 65_536 } })
    : createLibvirtDriver({
        ...options,
        uri: `qemu:///system?socket=${libvirtSocket}`,
        network: 'user',
        hostNetwork: network,
      });
const never = new AbortController().signal;

const calls: Readonly<Record<string, (argument: never) => unknown>> = {
  fault: () => network.fault(),
  reserve: (guest: Parameters<typeof network.reserve>[0]) => network.reserve(guest),
  adopt: (guest: PlacedGuest) => network.adopt(guest),
  settle: () => network.settle(),
  attach: (guest: PlacedGuest) => network.attach(guest),
  release: (instanceId: string) => network.release(instanceId),
  leave: () => network.leave?.(),
  recover: () => driver.recover(),
  create: (spec: GuestSpec) => driver.create(spec, never),
  remove: (instanceId: string) => driver.remove(instanceId),
  guests: () => driver.guests(),
  untilReady: (instanceId: string) => untilGuest(driver, instanceId, (guest) => guest?.ready === true),
  untilAddress: (instanceId: string) => untilGuest(driver, instanceId, (guest) => guest?.address !== undefined),
  log: async (instanceId: string) => Buffer.from((await driver.readLog(instanceId, 0, 65_536)).data).toString(),
  fingerprint: () => driver.fingerprint(),
};

for await (const line of createInterface({ input: system.stdin })) {
  const { call, argument } = JSON.parse(line) as { call: string; argument: never }; // from the test
  try {
    system.stdout.write(`${JSON.stringify({ answer: (await calls[call]?.(argument)) ?? null })}\n`);
  } catch (error) {
    system.stdout.write(`${JSON.stringify({ error: describeError(error) })}\n`);
  }
}
system.exit(0);
