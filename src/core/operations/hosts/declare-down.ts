// An operator says that a silent host is down and that none of its guests runs. Berth cannot verify this: it is recorded
// as the proof for every replacement.

import { ApiError } from '../../../api/errors.ts';
import { hostStateName } from '../../../api/resources/host-state.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { withState } from '../../state/host-state-change.ts';
import { keys } from '../../state/keys.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { alreadyDone, type Decision } from '../decision.ts';
import { existing } from '../replace.ts';

/** Throws `Conflict` for a host that is heard: its guests run. */
export function declareDown(
  snapshot: Snapshot,
  input: { readonly name: string; readonly reason: string },
  ctx: Context,
): Decision {
  const key = keys.host(input.name);
  const entry = existing(snapshot, 'host', key, undefined);
  const { value } = entry;
  const state = hostStateName(value);
  const lease = keys.lease(input.name);
  if ((state !== 'Unknown' && state !== 'Down') || snapshot.get('lease', lease))
    throw new ApiError(
      'Conflict',
      `host "${input.name}" is ${state}: its agent is heard, so its guests may run. Only a host that is Unknown or Down can be declared to be down; stop its guests and its agent, and wait until it is Unknown`,
    );
  if (value.status.down?.proof?.kind === 'operator') return alreadyDone(entry);
  const message = input.reason === '' ? 'declared to be down by an operator' : `declared to be down: ${input.reason}`;
  const proof = { kind: 'operator', atMs: ctx.nowMs, message } as const;
  const down = { atMs: ctx.nowMs, reason: 'Declared', message, proof } as const;
  const host = withState({ ...value, status: { ...value.status, down } }, ctx.nowMs);
  return {
    plan: {
      changes: [
        { key, ifRevision: entry.revision, value: host },
        eventChange(value, { type: 'Warning', reason: 'HostDown', message, host: input.name }, ctx),
      ],
      // No control plane has read a heartbeat.
      conditions: [{ key: lease, ifRevision: 0 }],
    },
    key,
    changed: true,
  };
}
