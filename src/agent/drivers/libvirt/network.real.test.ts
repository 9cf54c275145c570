import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { untilGuest } from '../conformance.ts';
import type { Driver } from '../driver.ts';
import { testSpec } from '../qemu/test-host.ts';
import { guestUuid, macAddress } from '../guest-life/guest-files.ts';
import { type LibvirtTestHost, makeLibvirtTestHost } from './test-host.ts';
import { startLibvirt, type TestLibvirt, testNetwork, whyNoLibvirt, whyNoNetwork } from './test-libvirt.ts';

const never = new AbortController().signal;
const { name: network, bridge } = testNetwork;
/** Stands for the guest's: an address of this machine, because the network's own namespace cannot be reached. */
const own = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address;
const reason = whyNoLibvirt() ?? whyNoNetwork();

describe.skipIf(reason !== undefined)(`a network of libvirt’s${reason ? ` (${reason})` : ''}`, () => {
  let daemon: TestLibvirt;
  beforeAll(async () => {
    daemon = await startLibvirt({ network: testNetwork });
  });
  afterAll(() => daemon.stop());

  describe('and its guests', () => {
    let host: LibvirtTestHost;
    let driver: Driver;
    const open = async (): Promise<void> => {
      driver = host.open({ network });
      await driver.recover();
    };
    beforeEach(async () => {
      host = await makeLibvirtTestHost(daemon);
      await open();
    });
    afterEach(async () => {
      for (const each of driver.guests()) await driver.remove(each.instanceId);
      await driver.close();
      await host.dispose();
    });

    it('is started when it does not run, and then left as it is', async () => {
      expect(await driver.fingerprint()).toMatchObject({ available: true });
      await driver.create(testSpec(), never);
      expect(await host.ask((libvirt) => libvirt.ensureNetwork(network))).toEqual({ bridge, started: false });
    });

    it.skipIf(own === undefined)(
      `tells the address that a guest was leased, and its ports lead there, also for the next agent${own === undefined ? ' (this machine has no address to stand for the guest)' : ''}`,
      async () => {
        const spec = testSpec({ imageName: 'silent' });
        const guest = createServer((socket) => socket.end('hello')).listen(0, own);
        await once(guest, 'listening');
        const told = guest.address();
        const guestPort = typeof told === 'object' && told !== null ? told.port : 0;
        await driver.create({ ...spec, ports: [{ guestPort, hostPort: 0, protocol: 'tcp' }] }, never);
        // As dnsmasq's helper of libvirt writes it.
        const lease = {
          'ip-address': own,
          'mac-address': macAddress(guestUuid(spec.instanceId, spec.incarnation)),
          'expiry-time': 4_000_000_000,
        };
        const leases = join(await daemon.rootDirectory(), 'var/lib/libvirt/dnsmasq', `${bridge}.status`);
        await writeFile(leases, JSON.stringify([lease]));
        const seen = await untilGuest(driver, spec.instanceId, (each) => each?.address !== undefined);
        expect(seen?.address).toBe(own);
        const visit = async (): Promise<string> => {
          const socket = createConnection({ port: seen?.ports[0]?.hostPort ?? 0, host: '127.0.0.1' });
          let text = '';
          for await (const piece of socket) text += String(piece);
          return text;
        };
        expect(await visit()).toBe('hello');
        await driver.close();
        await open();
        expect(await visit()).toBe('hello');
        await driver.stop(spec.instanceId, 0);
        expect(await host.portTaken(seen?.ports[0]?.hostPort ?? 0)).toBe(false);
        guest.close();
      },
    );
  });
});
