import { afterAll, beforeAll, describe } from 'vitest';
import { driverConformance } from '../conformance.ts';
import { makeLibvirtTestHost } from './test-host.ts';
import { startLibvirt, type TestLibvirt, whyNoLibvirt } from './test-libvirt.ts';

const reason = whyNoLibvirt();

describe.skipIf(reason !== undefined)(`libvirt${reason ? ` (${reason})` : ''}`, () => {
  let daemon: TestLibvirt;
  beforeAll(async () => {
    daemon = await startLibvirt();
  });
  afterAll(() => daemon.stop());

  driverConformance('the libvirt driver', () => makeLibvirtTestHost(daemon));
});
