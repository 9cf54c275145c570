// The container driver: guests that are groups of containers of an engine on this host, podman or Docker. What it shares with
// virtual machines is guest-life/driver.ts; this puts the engine behind it. Without an engine its fingerprint is `available:
// false`, and a later fingerprint looks again.

import type { Prng } from '../../../base/prng.ts';
import type { CredentialFor } from '../../images/credentials/image-credentials.ts';
import type { Driver } from '../driver.ts';
import { createVmDriver } from '../guest-life/driver.ts';
import type { VmDriverOptions } from '../guest-life/hands.ts';
import { type ContainerNetwork, withContainers } from './container-config.ts';
import { EngineClient } from './engine-client.ts';
import { EngineError } from './engine-http.ts';
import { type EngineSocketOptions, findEngineSocket } from './engine-socket.ts';
import { watchEngine } from './engine-watch.ts';
import { GroupHypervisor } from './group-hypervisor.ts';

export type ContainerDriverOptions = Omit<VmDriverOptions, 'createHypervisor' | 'qemuImgProgram'> & {
  readonly prng: Prng;
  readonly imageCredentials?: CredentialFor;
  readonly socket: EngineSocketOptions;
  /** Whether the agent can mount volumes: as root. */
  readonly filesystems?: boolean;
  /** Absent: the engine's. */
  readonly ownNetwork?: ContainerNetwork;
};

export function createContainerDriver(options: ContainerDriverOptions): Driver {
  const { clock, prng, log, bindAddress = '127.0.0.1', imageCredentials, ownNetwork, filesystems = false } = options;
  const engine = new EngineClient({
    clock,
    socketPath: async () => {
      const found = await findEngineSocket(options.socket);
      if (!found.ok) throw new EngineError(found.fault);
      return found.path;
    },
  });
  const watch = watchEngine({ engine, clock, prng, log });
  let hypervisor: GroupHypervisor | undefined;
  const driver = createVmDriver({
    ...options,
    createHypervisor: ({ root }) => {
      const shared = { engine, watch, clock, log, bindAddress, imageCredentials, ownNetwork };
      hypervisor = new GroupHypervisor({ ...shared, filesystems, root });
      return hypervisor;
    },
  });
  return {
    ...driver,
    mounts: true,
    ...(filesystems ? { filesystems } : {}),
    create: (spec, signal) => driver.create(withContainers(spec), signal),
    async close() {
      await driver.close();
      watch.close();
      await hypervisor?.quiet();
    },
  };
}
