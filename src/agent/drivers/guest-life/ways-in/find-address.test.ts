import { expect, it } from 'vitest';
import { silentLogger } from '../../../../base/log.ts';
import { createManualClock } from '../../../../base/manual-clock.ts';
import { seededPrng } from '../../../../base/prng.ts';
import type { HostNetwork } from '../../../network/host-network.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { watchAddress } from './find-address.ts';
import type { GuestRecord } from '../guest-record.ts';

it('an address on a bridge is told when it is heard, and again when it is another', async () => {
  const clock = createManualClock();
  const record = (address?: string) => ({ address }) as GuestRecord; // nothing else of it is looked at
  const slot = { instanceId: 'inst_x', record: record() };
  const ended = Promise.withResolvers<never>();
  let heard: string | undefined;
  let asked = 0;
  const heardOf = async (): Promise<string | undefined> => {
    asked++;
    return heard;
  };
  const network = { heardOf } as Partial<HostNetwork> as HostNetwork; // nothing else is asked
  const watching = watchAddress(
    {
      ...{ clock, prng: seededPrng(1), log: silentLogger, hypervisor: { network } },
      guestAgents: { use: () => Promise.reject(new DriverError('NotPossible', 'there is none')) },
    },
    slot,
    {
      run: { ended: ended.promise },
      card: '02:00:00:00:00:01',
      found: (address) => {
        slot.record = record(address);
      },
    },
  );
  const look = async (): Promise<void> => {
    const before = asked;
    await expect.poll(() => clock.nextDueMs()).toBeDefined();
    clock.advance(30_000);
    await expect.poll(() => asked).toBeGreaterThan(before);
  };
  await look();
  expect(slot.record.address).toBeUndefined();
  heard = '10.0.0.7';
  await look();
  await expect.poll(() => slot.record.address).toBe('10.0.0.7');
  heard = undefined; // it was silent for a while
  await look();
  expect(slot.record.address).toBe('10.0.0.7');
  heard = '10.0.0.8';
  await look();
  await expect.poll(() => slot.record.address).toBe('10.0.0.8');
  ended.reject(new Error('it has ended'));
  await watching;
});
