// Follows the stream of assignments of one session, and writes each event to the ledger.

import type { AssignmentEvent } from '../../api/agent-protocol.ts';
import { ApiError } from '../../api/errors.ts';
import { backoffMs } from '../../base/backoff.ts';
import { neverBuggify } from '../../base/buggify.ts';
import { sleep } from '../../base/clock.ts';
import { describeError } from '../../base/log.ts';
import { settleWithin } from '../host/await-within.ts';
import type { AgentParts, SessionState } from './agent-parts.ts';
import { isSessionOver, SessionOver } from './session-over.ts';

const watchRetry = { delayMsMin: 200, delayMsMax: 5000 }; // a server that restarts finds its hosts again within seconds
const watchSettledAfterMs = 1000;
const silenceMsMin = 30_000; // the stream carries pings; this much silence means it is dead

/** Runs until `signal` aborts. Throws what ends the session. */
export async function watchAssignments(parts: AgentParts, state: SessionState, signal: AbortSignal): Promise<void> {
  const { clock, prng, log } = parts.options;
  for (let attempt = 0; !signal.aborted; ) {
    const beganMs = clock.monotonicMs();
    try {
      await watchOnce(parts, state, signal);
      if (!signal.aborted) log.debug('the line of assignments was closed');
    } catch (error) {
      if (signal.aborted) return;
      if (isSessionOver(error)) throw error;
      log.warn('the line of assignments broke; opening it again', { error: describeError(error) });
    }
    if (clock.monotonicMs() - beganMs >= watchSettledAfterMs) attempt = 0;
    await sleep(clock, backoffMs(attempt++, watchRetry, prng), signal);
  }
}

async function watchOnce(parts: AgentParts, state: SessionState, signal: AbortSignal): Promise<void> {
  const { clock, buggify = neverBuggify } = parts.options;
  const stream = new AbortController();
  const timeoutMs = Math.max(silenceMsMin, 3 * state.session.heartbeatMs);
  const events = parts.api.assignments(state.session.epoch, stream.signal)[Symbol.asyncIterator]();
  try {
    for (let first = true; !signal.aborted; first = false) {
      const next = await settleWithin({ clock, timeoutMs, signal, what: 'assignments' }, () => events.next());
      if (next.done === true || signal.aborted) return;
      if (first && next.value.type !== 'sync')
        throw new ApiError('Internal', 'the line of assignments began without a sync');
      takeIn(parts, state, next.value);
      if (buggify('assignments-left')) return;
    }
  } finally {
    stream.abort();
    // Not awaited: a stream that hangs may never answer.
    events.return?.(undefined)?.catch(() => {});
  }
}

function takeIn(parts: AgentParts, state: SessionState, event: AssignmentEvent): void {
  const { ledger, guests, volumes, reporter } = parts;
  if (event.type === 'sync' && event.revision < state.revision) {
    // A control plane that lags behind this agent would create guests again that are gone. A control plane that knows the
    // next session knows all that was before it.
    throw new SessionOver(`the control plane went back from revision ${state.revision} to ${event.revision}`);
  }
  state.revision = Math.max(state.revision, event.revision);
  if (event.type === 'ping') return;
  const changed = ledger.apply(event);
  for (const volumeId of changed.volumes) volumes.look(volumeId);
  for (const instanceId of changed.instances) guests.look(instanceId);
  if (event.type !== 'sync') return;
  state.synced = true;
  parts.lease.tell();
  guests.leaseChanged();
  reporter.hurry();
  parts.beginActing();
}
