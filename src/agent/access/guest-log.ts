// A guest's console as a series of pieces, from an offset on; following goes on until the guest can write no more.

import { type Clock, sleep } from '../../base/clock.ts';
import { createPace } from '../../base/concurrency/pace.ts';
import type { Driver, LogChunk } from '../drivers/driver.ts';
import { DriverError } from '../host/driver-error.ts';

export interface LogRange {
  readonly instanceId: string;
  readonly offset: number;
  readonly follow: boolean;
  /** Maximum number of bytes; default: all there are. */
  readonly limit?: number;
}

const pieceBytes = 64 * 1024;
/**
 * What one reader is given of one guest in the long run: a guest that writes byte by byte must not keep the agent busy with it, nor one that
 * writes much its line. Above what anybody types or reads, and the whole of a log comes at once; what is passed over by then is told as a
 * gap between offsets.
 */
const piecesPace = { perSecond: 250, atOnceMax: 2000 };
const bytesPace = { perSecond: 2 * 1024 * 1024, atOnceMax: 16 * 1024 * 1024 };
const pollMs = 250; // where the kernel reports no growth, four checks a second are quick enough to follow

/**
 * The first piece always comes, even if empty: its offset says where the log begins. Throws `NoSuchGuest` when there is no guest
 * to begin with. Where the start of the log was dropped while it was read, a piece begins later than the one before it ended.
 */
export async function* followLog(
  { driver, clock, range }: { readonly driver: Driver; readonly clock: Clock; readonly range: LogRange },
  signal: AbortSignal,
): AsyncGenerator<LogChunk> {
  const { instanceId } = range;
  const guestOf = () => driver.guests().find((guest) => guest.instanceId === instanceId);
  const incarnation = guestOf()?.incarnation;
  let { offset, limit: left = Number.POSITIVE_INFINITY } = range;
  const pieces = createPace({ clock, ...piecesPace });
  const bytes = createPace({ clock, ...bytesPace });
  let wake = (): void => {};
  driver.watch((changed) => {
    if (changed === instanceId) wake();
  }, signal);
  driver.access?.watchLog?.(instanceId, () => wake(), signal);

  for (let first = true; !signal.aborted; first = false) {
    // Before the read: what a guest wrote before its end is then in what is read.
    const guest = guestOf();
    if (!first && guest?.incarnation !== incarnation) return; // gone, or another life with another log
    const over = guest === undefined || guest.state === 'exited' || guest.state === 'failed';
    const changed = new AbortController();
    wake = () => changed.abort();
    let piece: LogChunk;
    try {
      piece = await driver.readLog(instanceId, offset, Math.min(pieceBytes, left));
    } catch (error) {
      if (!first && error instanceof DriverError && error.code === 'NoSuchGuest') return; // it went while we looked
      throw error;
    }
    if (first || piece.data.length > 0) yield piece;
    // What there is now: of a guest that writes as fast as is read there would be no end.
    if (first && !range.follow) left = Math.min(left, Math.max(0, piece.size - piece.offset));
    offset = piece.offset + piece.data.length;
    left -= piece.data.length;
    if (left <= 0) return;
    if (piece.data.length > 0) {
      await pieces.take(1, signal);
      await bytes.take(piece.data.length, signal);
      continue;
    }
    if (over || !range.follow) return;
    const end = (): void => changed.abort();
    signal.addEventListener('abort', end, { once: true });
    await sleep(clock, pollMs, changed.signal);
    signal.removeEventListener('abort', end);
  }
}
