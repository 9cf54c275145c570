// Writes what the configuration says about the fleet to the store, once it is open.

import { systemMachineId } from '../../base/system.ts';
import type { Logger } from '../../base/log.ts';
import { ApiError } from '../../api/errors.ts';
import { announceControlPlane } from '../../core/operations/servers/control-plane.ts';
import type { Policy } from '../../core/state/context.ts';
import type { ServerConfig } from '../config.ts';
import { type Decider, decideAndCommit } from '../decide.ts';
import { loadImageMap, readImageMap } from '../images/image-map-load.ts';
import { amqpSettingsOf, taskSettingsOf } from '../intake/amqp/amqp-settings.ts';

export async function applyConfiguration(config: ServerConfig, decider: Decider, log: Logger): Promise<void> {
  const { imageMap } = config;
  if (imageMap !== undefined) await whereThereIsRoom(() => loadImageMap(imageMap, decider, log), log);
  await whereThereIsRoom(() => announce(config, decider), log);
}

/**
 * Throws `InvalidRequest` for faults of what is applied after the store is open. A server must not mark the store, after which servers of the
 * previous version write nothing, and then fail to start.
 */
export async function checkApplied(config: ServerConfig, { maxConcurrency }: Policy): Promise<void> {
  if (config.imageMap !== undefined) await readImageMap(config.imageMap);
  amqpSettingsOf(config, maxConcurrency);
  taskSettingsOf(config);
}

/** A full store is served all the same: it can be read, and deletions often free space. */
async function whereThereIsRoom(write: () => Promise<unknown>, log: Logger): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'StoreFull') throw error;
    log.error('the store has no space; free some, and restart the server to apply its configuration');
  }
}

/** Records which machine this control plane runs on, so that its host is known as a host of a control plane. */
async function announce({ excludeControlPlaneHosts: excludeHosts }: ServerConfig, decider: Decider): Promise<void> {
  const machineId = await systemMachineId();
  if (machineId !== undefined) {
    await decideAndCommit(decider, (snapshot, ctx) => announceControlPlane(snapshot, { machineId, excludeHosts }, ctx));
  } else if (excludeHosts) {
    throw new ApiError(
      'InvalidRequest',
      'excludeControlPlaneHosts: this machine has no id in /etc/machine-id, so its host cannot be told from others; set controlPlane: true on the host instead ("berth host set HOST --control-plane")',
      { field: 'excludeControlPlaneHosts' },
    );
  }
}
