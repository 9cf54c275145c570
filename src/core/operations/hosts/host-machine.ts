// Hosts on one machine share its resources: the part of a host's amounts that counts, and a condition that explains it.

import type { Host } from '../../../api/resources/host.ts';
import { type OnMachine, shareOfMachine } from '../../ledger/machine-room.ts';
import { conditionOf, withConditions } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { besideHost } from '../../state/views/machines.ts';
import { withClaimsJudged } from '../host-claims.ts';

/** Its amounts, or its share of them when other hosts are on its machine. */
export function claimsBesideOthers(
  snapshot: Snapshot,
  host: Host,
): Pick<Host['status'], 'capacity' | 'reserved' | 'providers'> {
  const others = besideHost(snapshot, host);
  return others.length === 0
    ? host.status
    : shareOfMachine(
        onMachine(host),
        others.map(({ value }) => onMachine(value)),
      );
}

/** The host with conditions about amounts that do not count. Adds none when everything counts. */
export function withRoomJudged(snapshot: Snapshot, host: Host, ctx: Pick<Context, 'nowMs'>): Host {
  return withMachineJudged(snapshot, withClaimsJudged(snapshot, host, ctx), ctx);
}

const type = 'OwnMachine';

function withMachineJudged(snapshot: Snapshot, host: Host, { nowMs }: Pick<Context, 'nowMs'>): Host {
  const { status } = host;
  const others = besideHost(snapshot, host).map(({ value }) => value.metadata.name);
  const known = conditionOf(status.conditions, type);
  if (others.length === 0 && known?.status !== 'False') return host;
  const condition =
    others.length === 0
      ? ({ type, status: 'True', reason: 'OnlyHost', message: 'no other host is on its machine' } as const)
      : ({ type, status: 'False', reason: 'MachineShared', message: sharedMessage(snapshot, host, others) } as const);
  if (known?.status === condition.status && known.message === condition.message) return host;
  return { ...host, status: { ...status, conditions: withConditions(status.conditions, [condition], nowMs) } };
}

function sharedMessage(snapshot: Snapshot, host: Host, others: readonly string[]): string {
  const counted = claimsBesideOthers(snapshot, host).capacity ?? {};
  const parts = Object.entries(host.status.capacity ?? {}).flatMap(([each, all]) =>
    counted[each] === all ? [] : [`${counted[each]} of ${all} ${each}`],
  );
  const named = [...others]
    .sort()
    .slice(0, namedMax)
    .map((name) => `"${name}"`);
  const more = others.length > namedMax ? ` and ${others.length - namedMax} more` : '';
  const share = parts.length === 0 ? 'all that it states' : parts.join(', ');
  return `shares its machine with ${named.join(', ')}${more}, and has ${share}`;
}

const namedMax = 3;

function onMachine({ metadata: { name }, spec, status }: Host): OnMachine {
  return { name, spec, status };
}
