import { expect, it } from 'vitest';
import { silentLogger } from '../../../../base/log.ts';
import { systemClock } from '../../../../base/system.ts';
import { createBridgeNetwork } from '../../../network/bridge-network.ts';
import type { GuestNetwork } from '../../../network/guest-network.ts';
import { newRecord } from '../records.ts';
import { connectGuest } from './guest-link.ts';
import { makeQemuTestHost, testSpec } from '../../qemu/test-host.ts';

const machine = (network: GuestNetwork) => ({
  record: { ...newRecord(testSpec(), 'a uuid'), network },
  directory: '/nowhere',
  log: silentLogger,
});
const bridgeNetwork = createBridgeNetwork({ bridge: 'br-none', clock: systemClock });

it('refuses a guest of another network than the host has now, and says which to set', async () => {
  const nat = machine({ kind: 'nat', tap: 'bt1', macAddress: '02:00:00:00:00:01', address: '10.77.0.5' });
  const bridged = machine({ kind: 'bridge', bridge: 'br7', tap: 'bb1', macAddress: '02:00:00:00:00:01' });
  await expect(connectGuest(undefined, nat)).rejects.toThrow('set network: nat again');
  await expect(connectGuest(undefined, bridged)).rejects.toThrow('set network: bridge:br7 again');
  await expect(connectGuest(bridgeNetwork, nat)).rejects.toThrow('set network: nat again');
});

it('leaves a guest alone that was made for QEMU’s own network', async () => {
  const { record, directory, log } = machine({ kind: 'bridge', bridge: 'b', tap: 't', macAddress: 'm' });
  const { network: _none, ...before } = record;
  await expect(connectGuest(bridgeNetwork, { record: before, directory, log })).resolves.toBeUndefined();
});

it('is not available where the bridge is missing, and publishes no ports on one', async () => {
  const host = await makeQemuTestHost();
  const driver = host.open({ network: bridgeNetwork });
  try {
    expect(await driver.fingerprint()).toMatchObject({
      available: false,
      reason: 'this host has no bridge "br-none"; make it, or set "network" to another',
    });
    const never = new AbortController().signal;
    const published = testSpec({ ports: [{ guestPort: 80, hostPort: 0, protocol: 'tcp' }] });
    await expect(driver.create(published, never)).rejects.toThrow('guests of this host are on its own bridge');
    await expect(driver.create(testSpec(), never)).rejects.toThrow('no bridge "br-none"');
    expect(driver.guests()).toMatchObject([{ state: 'failed', reason: { code: 'HypervisorFailed' } }]);
    await driver.remove(testSpec().instanceId);
    expect(await host.traces(testSpec().instanceId)).toEqual([]);
  } finally {
    await driver.close();
    await host.dispose();
  }
});
