import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { silentLogger } from '../../../base/log.ts';
import { seededPrng } from '../../../base/prng.ts';
import { systemClock } from '../../../base/system.ts';
import { driverConformance } from '../conformance.ts';
import { createZonesDriver } from './driver.ts';
import { makeRecordedHost } from './test-recorded-host.ts';

const noPorts = 'a zone has an address of its own, and the driver refuses ports';
const noReason = 'zoneadm(8) tells that a zone has ended, not why';
const noEars = 'nobody keeps what bhyve writes to the console socket while no agent listens';

// The host is a recorded one: what passes here shows the driver's half of the contract. It has not been run on illumos.
driverConformance('the zones driver, on a recorded host,', makeRecordedHost, {
  'succeeds after it failed, once the cause is gone': noPorts,
  'are chosen, published while the guest runs, and free after its removal': noPorts,
  'of one guest are refused to another, also while it is stopped': noPorts,
  'is failed, with a reason, and can be started again': noReason,
  'hears of a boot that ended while nobody looked, and of a death': `${noReason}; ${noEars}`,
});

it('says on a real machine without such a pool what is missing, and finds no guests there', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'bz-'));
  const driver = createZonesDriver({
    directory,
    images: { ensure: () => Promise.reject(new Error('nobody asks for an image')), list: async () => [] },
    clock: systemClock,
    prng: seededPrng(1),
    log: silentLogger,
    settings: { dataset: 'no-such-pool/berth', globalNic: 'igb0' },
  });
  expect(await driver.fingerprint()).toMatchObject({ available: false, reason: expect.stringContaining('zones') });
  await driver.recover();
  expect(driver.guests()).toEqual([]);
  await driver.close();
  await rm(directory, { recursive: true });
});
