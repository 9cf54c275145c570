// The zones driver: virtual machines that are bhyve zones of an illumos host. It has been run against recorded dialogues only, never
// on illumos (docs/zones.md).

import type { Prng } from '../../../base/prng.ts';
import type { Driver } from '../driver.ts';
import { createVmDriver } from '../guest-life/driver.ts';
import type { VmDriverOptions } from '../guest-life/hands.ts';
import { runTool } from '../../host/run-tool.ts';
import type { RunCommand } from './commands.ts';
import type { ZonesSettings } from './host-look.ts';
import { ZonesHypervisor, type ZonesOptions } from './hypervisor.ts';

export interface ZonesDriverOptions
  extends Omit<VmDriverOptions, 'createHypervisor'>,
    Pick<ZonesOptions, 'lookEveryMs' | 'confirmMs'> {
  readonly prng: Prng;
  readonly settings: ZonesSettings;
  /** Default: this machine. */
  readonly run?: RunCommand;
}

export function createZonesDriver(options: ZonesDriverOptions): Driver {
  const run = options.run ?? ((call) => runTool(options.clock, call));
  return createVmDriver({
    ...options,
    createHypervisor: (hands) => new ZonesHypervisor({ ...options, ...hands, run }),
  });
}
