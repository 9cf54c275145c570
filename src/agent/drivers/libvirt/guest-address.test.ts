import { expect, it } from 'vitest';
import { silentLogger } from '../../../base/log.ts';
import { createManualClock } from '../../../base/manual-clock.ts';
import { seededPrng } from '../../../base/prng.ts';
import { macAddress } from '../guest-life/guest-files.ts';
import type { Connection } from './connection.ts';
import { guestAddress } from './guest-address.ts';
import type { Libvirt } from './libvirt.ts';

const domain = { name: 'berth-x', uuid: '00000000-0000-4000-8000-000000000001', id: 1 };

it('a lease that became another is told, and what was only heard is no sure word', async () => {
  const clock = createManualClock();
  const over = new AbortController();
  let known: { readonly source: string; readonly address: string } = { source: 'arp', address: '192.168.200.9' };
  const libvirt = {
    addresses: async (_domain: unknown, source: string) =>
      source !== known.source
        ? []
        : [
            {
              name: 'vnet0',
              macAddress: macAddress(domain.uuid),
              addresses: [{ version: 4, address: known.address, prefix: 24 }],
            },
          ],
    xml: async () => '<domain/>',
  } as Partial<Libvirt> as Libvirt; // nothing else is asked
  const ask = <Result>(act: (of: Libvirt) => Promise<Result>): Promise<Result> => act(libvirt);
  const connection = { ask, apart: ask } as Partial<Connection> as Connection; // nothing else is used
  const told: [string, boolean][] = [];
  const options = { connection, domain, network: 'guests', clock, prng: seededPrng(1), log: silentLogger };
  const address = guestAddress({ ...options, signal: over.signal });
  address.onFound((found, sure) => told.push([found, sure]));
  const after = async (count: number): Promise<void> => {
    await expect
      .poll(() => {
        clock.advance(30_000);
        return told.length;
      })
      .toBe(count);
  };
  await after(1);
  known = { source: 'lease', address: '192.168.200.7' };
  await after(2);
  expect(await address.current()).toBe('192.168.200.7');
  known = { source: 'lease', address: '192.168.200.8' };
  await after(3);
  expect(told).toEqual([
    ['192.168.200.9', false],
    ['192.168.200.7', true],
    ['192.168.200.8', true],
  ]);
  over.abort();
});
