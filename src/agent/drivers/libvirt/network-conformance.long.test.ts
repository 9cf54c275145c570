// The whole contract once more on a network of libvirt's. What is special to that is in network.real.test.ts.

import { afterAll, beforeAll, describe } from 'vitest';
import { driverConformance } from '../conformance.ts';
import { makeLibvirtTestHost } from './test-host.ts';
import { startLibvirt, type TestLibvirt, testNetwork, whyNoLibvirt, whyNoNetwork } from './test-libvirt.ts';

const reason = whyNoLibvirt() ?? whyNoNetwork();

describe.skipIf(reason !== undefined)(`a network of libvirt’s${reason ? ` (${reason})` : ''}`, () => {
  let daemon: TestLibvirt;
  beforeAll(async () => {
    daemon = await startLibvirt({ network: testNetwork });
  });
  afterAll(() => daemon.stop());

  // The agent publishes the ports here, so all that has to do with them is another thing than on the network "user".
  driverConformance('the libvirt driver on a network', async () => {
    const host = await makeLibvirtTestHost(daemon);
    return { ...host, open: () => host.open({ network: testNetwork.name }) };
  });
});
