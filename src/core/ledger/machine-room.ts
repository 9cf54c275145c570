// Divides the room of a machine among the hosts on it, so that it is counted once (docs/decisions/0045). Pure.

import type { ChildProvider } from '../../api/resources/host-rules.ts';
import type { HostSpec, HostStatus } from '../../api/resources/host.ts';
import type { Amounts } from '../../api/resources/metadata.ts';

/** What of a host decides how much of its machine it has. */
export interface OnMachine {
  readonly name: string;
  readonly spec: Pick<HostSpec, 'inventory'>;
  readonly status: Pick<HostStatus, 'capacity' | 'reserved' | 'providers' | 'measured' | 'diskId' | 'registeredAtMs'>;
}

type Claims = Pick<HostStatus, 'capacity' | 'reserved' | 'providers'>;

/**
 * What of the claims of `host` counts beside the `others` on the same machine. What hosts state is theirs; what is left of a measured
 * amount is divided equally among the hosts that measured it, with at least one CPU for each. The reserve and NUMA cells are divided in the
 * same proportion. A device that several hosts found belongs to the host that registered first.
 */
export function shareOfMachine(host: OnMachine, others: readonly OnMachine[]): Claims {
  const { capacity, reserved, providers, measured } = host.status;
  if (capacity === undefined || measured === undefined || others.length === 0) return { capacity, reserved, providers };
  const shared: Record<string, number> = { ...capacity };
  for (const resourceClass of measured) {
    if (capacity[resourceClass] === undefined || isStated(host, resourceClass)) continue;
    shared[resourceClass] = shareOf(resourceClass, { host, others, all: capacity[resourceClass] });
  }
  const partOf = (resourceClass: string, amount: number): number => {
    const all = capacity[resourceClass] ?? 0;
    return all === 0 ? amount : (amount * (shared[resourceClass] ?? all)) / all;
  };
  return {
    capacity: shared,
    reserved: reserved && mapped(reserved, (each, amount) => Math.ceil(partOf(each, amount))),
    providers: providers
      ?.filter((child) => !isDeviceOfAnother(child, host, others))
      .map((child) => ({
        ...child,
        amounts: mapped(child.amounts, (each, amount) => Math.floor(partOf(each, amount))),
      })),
  };
}

function shareOf(
  resourceClass: string,
  { host, others, all }: { readonly host: OnMachine; readonly others: readonly OnMachine[]; readonly all: number },
): number {
  const beside = others.filter((other) => sameSource(resourceClass, host, other));
  let left = all;
  let sharers = 1;
  let before = 0;
  for (const other of beside) {
    const stated = statedOf(other, resourceClass);
    if (stated !== undefined) left -= stated;
    else if (other.status.measured?.includes(resourceClass)) {
      sharers += 1;
      if (isEarlier(other, host)) before += 1;
    }
  }
  left = Math.max(0, left);
  const share = Math.floor(left / sharers) + (before < left % sharers ? 1 : 0);
  return resourceClass === 'VCPU' ? Math.max(1, share) : share;
}

/** A disk is shared only by hosts whose data directories are on the same file system. */
function sameSource(resourceClass: string, host: OnMachine, other: OnMachine): boolean {
  return resourceClass !== 'DISK_GB' || host.status.diskId === other.status.diskId;
}

/** The amount that the operator or the agent's configuration states; undefined: it is measured, or there is none. */
function statedOf({ spec, status }: OnMachine, resourceClass: string): number | undefined {
  const ofOperator = spec.inventory?.[resourceClass]?.total;
  if (ofOperator !== undefined) return ofOperator;
  return status.measured?.includes(resourceClass) ? undefined : status.capacity?.[resourceClass];
}

function isStated(host: OnMachine, resourceClass: string): boolean {
  return host.spec.inventory?.[resourceClass]?.total !== undefined;
}

function isDeviceOfAnother(child: ChildProvider, host: OnMachine, others: readonly OnMachine[]): boolean {
  if (!isFoundDevice(child, host)) return false;
  return others.some(
    (other) =>
      isEarlier(other, host) &&
      other.status.providers?.some((each) => each.name === child.name && isFoundDevice(each, other)),
  );
}

/** Its classes were measured, and are no part of the amounts of the machine, as those of a NUMA cell are. */
function isFoundDevice({ amounts }: ChildProvider, { status: { measured, capacity } }: OnMachine): boolean {
  return Object.keys(amounts).some((each) => measured?.includes(each) && capacity?.[each] === undefined);
}

/** The same order for every host of the machine. */
function isEarlier(a: OnMachine, b: OnMachine): boolean {
  const aMs = a.status.registeredAtMs ?? 0;
  const bMs = b.status.registeredAtMs ?? 0;
  return aMs === bMs ? a.name < b.name : aMs < bMs;
}

function mapped(amounts: Amounts, to: (resourceClass: string, amount: number) => number): Amounts {
  return Object.fromEntries(Object.entries(amounts).map(([each, amount]) => [each, to(each, amount)]));
}
