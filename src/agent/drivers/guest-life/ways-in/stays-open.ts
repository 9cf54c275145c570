// Whether a connection is with the guest, where a forwarder of this host may have accepted it first: a forwarder closes it as soon as the
// guest has refused it.

import type { Duplex } from 'node:stream';
import type { Clock } from '../../../../base/clock.ts';
import { DriverError } from '../../../host/driver-error.ts';

/** A forwarder on this host needs a few milliseconds to find out. */
const settleMs = 200;

/** Resolves when it stays open for a while, or when the guest has sent anything. Throws `NotPossible`. Ends the connection. */
export async function assertStaysOpen(stream: Duplex, clock: Clock, signal: AbortSignal, what: string): Promise<void> {
  const settled = Promise.withResolvers<boolean>();
  const timer = clock.setTimer(settleMs, () => settled.resolve(true));
  const giveUp = (): void => settled.resolve(false);
  stream.once('data', () => settled.resolve(true));
  for (const event of ['end', 'close', 'error']) stream.once(event, giveUp);
  signal.addEventListener('abort', giveUp, { once: true });
  if (signal.aborted) giveUp();
  try {
    if (await settled.promise) return;
    throw new DriverError('NotPossible', `${what} accepts no connection`);
  } finally {
    timer.cancel();
    signal.removeEventListener('abort', giveUp);
    stream.on('error', () => {}); // it is of no interest any more
    stream.destroy();
  }
}
