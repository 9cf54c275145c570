import { afterAll, beforeAll, describe } from 'vitest';
import { driverConformance } from '../conformance.ts';
import { type ContainerTestHosts, startContainerTestHosts } from './test-host.ts';
import { whyNoPodman } from './test-podman.ts';

const why = whyNoPodman();

describe.skipIf(why !== undefined)(`with podman${why === undefined ? '' : ` (${why})`}`, () => {
  let hosts: ContainerTestHosts;
  beforeAll(async () => {
    hosts = await startContainerTestHosts();
  });
  afterAll(() => hosts.stop());

  driverConformance('the container driver', () => hosts.make());
});
