// Whether a TCP port accepts connections: connects and closes, and sends nothing.

import { connect } from 'node:net';
import type { Clock } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import type { GuardedPlace, ProbeGuard } from './probe-guard.ts';

export interface TcpCall {
  readonly place: GuardedPlace;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Why there was no connection; undefined: there was one. */
export function tcpConnect(
  { guard, clock }: { readonly guard: ProbeGuard; readonly clock: Clock },
  { place, timeoutMs, signal }: TcpCall,
): Promise<string | undefined> {
  const { hostname, port } = place;
  const refused = signal.aborted ? 'it was stopped' : guard.whyNotLiteral(place);
  if (refused !== undefined) return Promise.resolve(refused);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port, lookup: guard.lookupFor(place) });
    const end = (why: string | undefined): void => {
      timer.cancel();
      signal.removeEventListener('abort', abort);
      socket.destroy();
      resolve(why);
    };
    const abort = (): void => end('it was stopped');
    const timer = clock.setTimer(timeoutMs, () => end(`no connection within ${timeoutMs / 1000} s`));
    signal.addEventListener('abort', abort, { once: true });
    socket.once('connect', () => end(guard.whyNot(socket.remoteAddress ?? '', place)));
    socket.on('error', (error) => end(describeError(error).slice(0, 200)));
  });
}
