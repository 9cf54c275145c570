// A process of its own for tests: starts a playbook as a server does, says so, and lives until it is killed. Its argument is JSON.

import { system, systemClock } from '../../../../base/system.ts';
import { type PlaybookOrder, Playbooks } from './playbooks.ts';
import type { AnsibleConfig } from '../provisioner-config.ts';

interface Start {
  readonly config: AnsibleConfig;
  readonly directory: string;
  readonly order: PlaybookOrder;
}

const { config, directory, order } = JSON.parse(system.arguments()[0] ?? '') as Start;
await new Playbooks(config, { field: 'ansible', directory, clock: systemClock }).start(order);
system.stdout.write('started\n');
systemClock.setTimer(600_000, () => {});
