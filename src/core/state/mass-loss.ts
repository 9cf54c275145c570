// Mass loss: a large part of the hosts falls silent together. One shared cause is likelier than that all of them failed. Replacements
// wait then: the guests probably run, and a third of the fleet started at once would overload the rest.

import { agentSilent, hostStateName } from '../../api/resources/host-state.ts';
import { conditionOf } from './conditions.ts';
import type { Policy } from './context.ts';
import type { Snapshot } from './snapshot.ts';

const hostsMin = 3;
const shareMin = 1 / 3;

export interface MassLoss {
  readonly silent: number;
  readonly of: number;
  /** How many of them are held already. */
  readonly held: number;
}

/** Of hosts with an agent that fell silent about this time, besides `host`, which is one of them; undefined: too few. */
export function massLossAt(
  snapshot: Pick<Snapshot, 'list'>,
  { host, sinceMs }: { readonly host: string; readonly sinceMs: number },
  { offlineAfterMs }: Policy,
): MassLoss | undefined {
  let [silent, held, of] = [1, 0, 1];
  for (const { value } of snapshot.list('host')) {
    if (value.status.session === undefined || value.metadata.name === host) continue;
    of += 1;
    const name = hostStateName(value);
    const ready = conditionOf(value.status.conditions, 'Ready');
    if ((name !== 'Unknown' && name !== 'Down') || ready?.reason !== agentSilent) continue;
    if (Math.abs(ready.sinceMs - sinceMs) > windowsOf * offlineAfterMs) continue;
    silent += 1;
    if (value.status.down?.heldUntilMs !== undefined) held += 1;
  }
  return isMass(silent, of) ? { silent, of, held } : undefined;
}

/** Heartbeats of hosts that are cut off at once end within one such time; the other is for slow clocks. */
const windowsOf = 2;

export function isMass(silent: number, of: number): boolean {
  return silent >= hostsMin && silent >= of * shareMin;
}
