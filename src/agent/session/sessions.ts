// Registers the host and holds one session after another until the agent stops.

import type { Registration, Session } from '../../api/agent-protocol.ts';
import { ApiError } from '../../api/errors.ts';
import { backoffMs } from '../../base/backoff.ts';
import { sleep } from '../../base/clock.ts';
import { newId } from '../../base/ids.ts';
import { describeError } from '../../base/log.ts';
import { awaitWithin } from '../host/await-within.ts';
import { type AgentParts, callTimeoutMs, type SessionState } from './agent-parts.ts';
import { watchAssignments } from './assignments.ts';
import { Heartbeats } from './heartbeats.ts';
import { fingerprints, images } from './host-look.ts';
import { isSessionOver } from './session-over.ts';

const registerRetry = { delayMsMin: 500, delayMsMax: 30_000 };
const sessionRetry = { delayMsMin: 1000, delayMsMax: 60_000 }; // two agents of one host take turns no faster than this
const settledAfterMs = 60_000; // a session that lasted this long was a good one

/** Resolves when the agent stops. Throws when the host cannot be registered at all. */
export async function holdSessions(parts: AgentParts): Promise<void> {
  const { options, stopping } = parts;
  const { clock, log, prng } = options;
  for (let attempt = 0; !stopping.aborted; ) {
    const registration = await registrationOf(parts);
    const session = await register(parts, registration);
    if (session === undefined) return; // stopped
    const beganMs = clock.monotonicMs();
    log.info('registered', { host: options.hostName, epoch: session.epoch });
    const reason = await holdSession(parts, session, registration);
    if (stopping.aborted) return;
    if (clock.monotonicMs() - beganMs >= settledAfterMs) attempt = 0;
    const delayMs = backoffMs(attempt++, sessionRetry, prng);
    log.warn('the session is over; registering again', {
      epoch: session.epoch,
      reason: describeError(reason),
      delayMs,
    });
    await sleep(clock, delayMs, stopping);
  }
}

async function registrationOf(parts: AgentParts): Promise<Registration> {
  const { options, agentId, measurement } = parts;
  return {
    session: newId('sess', options.clock.nowMs(), options.prng),
    agentId,
    ...measurement,
    ...(options.directMoves === undefined
      ? {}
      : { moveKey: options.directMoves.fingerprint, takesMoves: options.directMoves.listens }),
    ...(options.maintenance === undefined ? {} : { maintains: true }),
    labels: { ...options.labels },
    drivers: await fingerprints(parts),
    images: await images(parts),
    agentVersion: options.agentVersion,
  };
}

/** Tries until it is answered. Repeating one registration is harmless: it names its session. */
async function register(
  { options, api, lease, stopping }: AgentParts,
  registration: Registration,
): Promise<Session | undefined> {
  const { clock, prng, log, hostName } = options;
  for (let attempt = 0; !stopping.aborted; attempt++) {
    try {
      const limits = { clock, timeoutMs: callTimeoutMs, signal: stopping, what: 'registering' };
      const sentMs = lease.nowMs;
      const session = await awaitWithin(limits, (signal) => api.register(registration, signal));
      lease.begin(sentMs, session.offlineAfterMs);
      return session;
    } catch (error) {
      if (stopping.aborted) return undefined;
      if (error instanceof ApiError && error.code === 'Conflict') {
        throw new Error(`cannot register host "${hostName}": ${error.message}`, { cause: error });
      }
      const delayMs = backoffMs(attempt, registerRetry, prng);
      const away = error instanceof ApiError && error.code === 'Unavailable';
      const fields = { host: hostName, error: describeError(error), ...adviceOf(error, hostName), delayMs };
      if (away) log.warn('cannot register; carrying on with what was last wanted', fields);
      else log.error('cannot register; carrying on with what was last wanted', fields);
      await sleep(clock, delayMs, stopping);
    }
  }
  return undefined;
}

/** The answer names no host: which host a token was made for, only its maker knows. */
function adviceOf(error: unknown, hostName: string): { readonly advice?: string } {
  return error instanceof ApiError && (error.code === 'Unauthenticated' || error.code === 'Forbidden')
    ? {
        advice: `its token is not that of host "${hostName}": give it what "berth host token ${hostName}" prints, or the name that its token was made for`,
      }
    : {};
}

/** Resolves with the reason when the session is over. */
async function holdSession(parts: AgentParts, session: Session, registration: Registration): Promise<unknown> {
  const { options, api, stopping, reporter } = parts;
  const over = new AbortController();
  const end = (): void => over.abort();
  stopping.addEventListener('abort', end, { once: true });
  if (stopping.aborted) end();
  let reason: unknown;
  const part = async (run: () => Promise<void>): Promise<void> => {
    try {
      await run();
    } catch (error) {
      reason ??= error;
    } finally {
      over.abort();
    }
  };
  const state: SessionState = { session, revision: 0, synced: false };
  parts.onSession(session);
  options.onSession?.(session, over.signal);
  await Promise.all([
    part(() => new Heartbeats(parts, state, registration).run(over.signal)),
    part(() => watchAssignments(parts, state, over.signal)),
    part(() => reporter.run({ epoch: session.epoch, send: api.report, endsSession: isSessionOver }, over.signal)),
  ]);
  stopping.removeEventListener('abort', end);
  return reason;
}
