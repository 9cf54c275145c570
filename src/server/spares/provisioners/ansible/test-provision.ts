// A process of its own for tests: provisions a spare as a server does, until it is killed. Its argument is JSON.

import { system, systemClock } from '../../../../base/system.ts';
import type { SpareWork } from '../../provisioner.ts';
import type { AnsibleConfig } from '../provisioner-config.ts';
import { AnsibleProvisioner } from './ansible-provisioner.ts';

interface Start {
  readonly config: AnsibleConfig;
  readonly directory: string;
  readonly work: SpareWork;
}

const { config, directory, work } = JSON.parse(system.arguments()[0] ?? '') as Start;
const provisioner = new AnsibleProvisioner(config, { field: 'ansible', directory, clock: systemClock, alone: true });
const { signal } = new AbortController();
await provisioner.provision(work, { signal, resumed: false, progress: () => {} });
