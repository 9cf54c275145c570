// What came of an order to power a host off. Only a power state that was read back is a proof.

import type { HostDown } from '../../../api/resources/host-state.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { alreadyDone, type Decision } from '../decision.ts';
import { existing } from '../replace.ts';

export interface FenceOutcome {
  readonly name: string;
  readonly attempt: number;
  /** Powered off, as read back afterwards. */
  readonly off: boolean;
  readonly message: string;
}

/** Changes nothing when the host has come back or another attempt has been ordered since. */
export function fenced(snapshot: Snapshot, { name, attempt, off, ...told }: FenceOutcome, ctx: Context): Decision {
  const key = keys.host(name);
  const entry = existing(snapshot, 'host', key, undefined);
  const { value } = entry;
  const { down } = value.status;
  if (down?.fence?.state !== 'ordered' || down.fence.attempt !== attempt) return alreadyDone(entry);
  const message = told.message.slice(0, messageLengthMax);
  const next: HostDown = {
    ...down,
    fence: { attempt, atMs: ctx.nowMs, state: off ? 'done' : 'failed', message },
    ...(off ? { proof: { kind: 'fenced', atMs: ctx.nowMs, message } } : {}),
  };
  const news = off
    ? ({ reason: 'Fenced', message } as const)
    : ({ type: 'Warning', reason: 'FencingFailed', message } as const);
  return {
    plan: {
      changes: [
        { key, ifRevision: entry.revision, value: { ...value, status: { ...value.status, down: next } } },
        eventChange(value, { ...news, host: name }, ctx),
      ],
    },
    key,
    changed: true,
  };
}

const messageLengthMax = 1_024;
