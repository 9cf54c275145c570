// What an agent may claim of its host. Amounts that no machine has are refused; what is over the limits of its pool is not counted, and a
// condition says so. What the operator states is no claim.

import type { Registration } from '../../api/agent-protocol.ts';
import { ApiError } from '../../api/errors.ts';
import type { ChildProvider } from '../../api/resources/host-rules.ts';
import type { Host, HostStatus } from '../../api/resources/host.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import { conditionOf, withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';

/** Several times what the largest machines of today have: logical CPUs, memory of 4 PiB, disks of 1 EiB. */
const plausible: Amounts = { VCPU: 8_192, MEMORY_MB: 2 ** 32, DISK_GB: 2 ** 30 };

/** Throws `InvalidRequest`: a host would draw every guest to itself by claiming enough. */
export function assertPlausible({ capacity }: Pick<Registration, 'capacity'>): void {
  for (const [resourceClass, most] of Object.entries(plausible)) {
    const claimed = capacity[resourceClass] ?? 0;
    if (claimed > most)
      throw new ApiError(
        'InvalidRequest',
        `capacity.${resourceClass} is ${claimed}, and no host has more than ${most}; an operator can state another amount for the host`,
        { field: `capacity.${resourceClass}` },
      );
  }
}

type Claims = Pick<HostStatus, 'capacity' | 'reserved' | 'providers'>;

/** The claims, cut to the limits: of several parts the first keep theirs. */
export function boundedClaims(claims: Claims, limits: Amounts | undefined): Claims {
  if (limits === undefined || claims.capacity === undefined) return claims;
  const left = { ...limits };
  const providers = claims.providers?.map(
    (child): ChildProvider => ({ ...child, amounts: cutBy(child.amounts, left) }),
  );
  return {
    ...claims,
    capacity: Object.fromEntries(
      Object.entries(claims.capacity).map(([of, amount]) => [of, Math.min(amount, limits[of] ?? amount)]),
    ),
    ...(providers === undefined ? {} : { providers }),
  };
}

/** Takes the amounts from what is left. */
function cutBy(amounts: Amounts, left: Record<string, number>): Amounts {
  return Object.fromEntries(
    Object.entries(amounts).map(([of, amount]) => {
      const granted = Math.min(amount, left[of] ?? amount);
      if (left[of] !== undefined) left[of] -= granted;
      return [of, granted];
    }),
  );
}

/** Limits of the pool that the host is in. */
export function limitsOf(snapshot: Snapshot, { pool }: Host['spec']): Amounts | undefined {
  return pool === undefined ? undefined : snapshot.get('pool', keys.pool(pool))?.value.spec.hostLimits;
}

/** The host, with a condition that says whether it claims more than its pool permits; without limits none is added. */
export function withClaimsJudged(snapshot: Snapshot, host: Host, { nowMs }: Pick<Context, 'nowMs'>): Host {
  const { status, spec } = host;
  const over = overOf(status.capacity ?? {}, limitsOf(snapshot, spec) ?? {});
  const known = conditionOf(status.conditions, type);
  if (over.length === 0 && known?.status !== 'False') return host;
  const condition =
    over.length === 0
      ? ({ type, status: 'True', reason: 'WithinLimits', message: 'it claims no more than its pool permits' } as const)
      : ({ type, status: 'False', reason: 'ClaimsTooMuch', message: overMessage(over, spec.pool) } as const);
  if (known?.status === condition.status && known.message === condition.message) return host;
  return { ...host, status: { ...status, conditions: withConditions(status.conditions, [condition], nowMs) } };
}

const type = 'WithinLimits';

function overOf(capacity: Amounts, limits: Amounts): { of: string; claimed: number; most: number }[] {
  return Object.entries(limits).flatMap(([of, most]) => {
    const claimed = capacity[of] ?? 0;
    return claimed > most ? [{ of, claimed, most }] : [];
  });
}

function overMessage(over: ReturnType<typeof overOf>, pool: string | undefined): string {
  const parts = over.map(({ of, claimed, most }) => `${claimed} ${of}, of which ${most} are counted`);
  return `its agent claims more than pool "${pool}" permits: ${parts.join('; ')}`;
}
