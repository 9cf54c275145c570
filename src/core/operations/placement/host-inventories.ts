// Inventories of hosts of ours, as a client of the Placement API states them. They become statements of the host's spec, as an operator makes
// them, so that they outlast the agent's next report. What an agent measures stays what it measured.

import { equalJson } from '../../../base/equal-json.ts';
import type { HostSpec } from '../../../api/resources/host.ts';
import { capacityOf } from '../../ledger/ledger.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Plan } from '../../state/plan.ts';
import type { Inventory, Provider } from '../../state/records.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { nameOf } from '../../state/views/placement-index.ts';
import { replaceHost } from '../host.ts';
import { badRequest, conflict, ours, placementCodes } from './fault.ts';

type Inventories = Readonly<Record<string, Inventory>>;

/** Of a host's spec. */
const ratioLimits = { min: 0.01, max: 1_000 };

/**
 * The Plan that makes `next` the inventories of a host. Throws `Conflict` for what its agent measures, for less than is claimed, and for a device or
 * cell of a host.
 */
export function stateInventories(snapshot: Snapshot, provider: Provider, next: Inventories, ctx: Context): Plan {
  const host = snapshot.get('host', keys.host(provider.host))?.value;
  if (provider.parent !== null || !host)
    throw ours(`the inventory of ${nameOf(provider)}`, 'its host states the devices and cells that it has');
  const { metadata, spec, status } = host;
  const measured: readonly string[] = [
    ...Object.keys(status.capacity ?? {}),
    ...[...(status.providers ?? []), ...(spec.providers ?? [])].flatMap(({ amounts }) => Object.keys(amounts)),
  ];
  let stated = spec;
  for (const name of Object.keys(provider.inventories))
    if (!Object.hasOwn(next, name)) stated = without(snapshot, { provider, name, measured, spec: stated });
  for (const [name, inventory] of Object.entries(next))
    stated = withOne(snapshot, { provider, name, measured, spec: stated }, inventory);
  return replaceHost(
    snapshot,
    { project: metadata.project, name: metadata.name, labels: metadata.labels, spec: stated },
    ctx,
  ).plan;
}

interface OneClass {
  readonly provider: Provider;
  readonly name: string;
  /** Classes whose amounts the agent says, or that devices and cells have. */
  readonly measured: readonly string[];
  readonly spec: HostSpec;
}

function without(snapshot: Snapshot, { provider, name, measured, spec }: OneClass): HostSpec {
  if (measured.includes(name)) throw ofAgent(provider, name);
  if (snapshot.usedBy(provider.id).get(name))
    throw conflict(
      `update conflict: Inventory for '${name}' on resource provider ${nameOf(provider)} in use.`,
      placementCodes.inventoryInUse,
    );
  return {
    ...spec,
    allocationRatios: omit(spec.allocationRatios, name),
    ...(spec.inventory ? { inventory: omit(spec.inventory, name) } : {}),
    ...(spec.reserved ? { reserved: omit(spec.reserved, name) } : {}),
  };
}

function withOne(snapshot: Snapshot, { provider, name, measured, spec }: OneClass, asked: Inventory): HostSpec {
  const now = Object.hasOwn(provider.inventories, name) ? provider.inventories[name] : undefined;
  const { total, reserved, minUnit, stepSize, allocationRatio } = asked;
  const inventory = { ...asked, maxUnit: Math.min(asked.maxUnit, Math.max(1, total)) };
  if (now && equalJson(now, inventory)) return spec;
  if (measured.includes(name) && total !== now?.total) throw ofAgent(provider, name);
  const used = snapshot.usedBy(provider.id).get(name) ?? 0;
  if (capacityOf(inventory) < used && capacityOf(inventory) < (now ? capacityOf(now) : 0))
    throw conflict(
      `update conflict: ${used} ${name} of ${nameOf(provider)} are claimed, and ${capacityOf(inventory)} would be left`,
      placementCodes.inventoryInUse,
    );
  if (allocationRatio < ratioLimits.min || allocationRatio > ratioLimits.max)
    throw badRequest(`The allocation ratio of '${name}' must be from ${ratioLimits.min} to ${ratioLimits.max}.`);
  const rules = {
    ...(measured.includes(name) ? omit(spec.inventory?.[name] ?? {}, 'reservedPercent') : { total }),
    ...(minUnit === now?.minUnit ? {} : { minUnit }),
    ...(inventory.maxUnit === (now?.maxUnit ?? Math.max(1, total)) ? {} : { maxUnit: inventory.maxUnit }),
    ...(stepSize === now?.stepSize ? {} : { stepSize }),
  };
  return {
    ...spec,
    ...(Object.keys(rules).length === 0 ? {} : { inventory: { ...spec.inventory, [name]: rules } }),
    ...(reserved === (now?.reserved ?? 0) ? {} : { reserved: { ...spec.reserved, [name]: reserved } }),
    ...(allocationRatio === (now?.allocationRatio ?? 1)
      ? {}
      : { allocationRatios: { ...spec.allocationRatios, [name]: allocationRatio } }),
  };
}

function ofAgent(provider: Provider, name: string): Error {
  return ours(
    `the total of ${name} of ${nameOf(provider)}`,
    `its agent measures it; state another with "berth host edit ${provider.host}"`,
  );
}

function omit<T extends object>(from: T, name: string): T {
  const { [name as keyof T]: _gone, ...rest } = from; // a key that is not there changes nothing
  return rest as T; // of records, which stay what they are with a key less
}
