// Sends one file of a run to the control plane while it grows, at once and as often as it takes. What was sent is never forgotten here
// before the run is: a control plane that has less than it said is sent it again.

import { ApiError } from '../../../api/errors.ts';
import { backoffMs } from '../../../base/backoff.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { isRecord } from '../../../base/is-record.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';

export interface UploadOptions {
  /** Bytes of the file, and whether it grows no more. */
  readonly state: () => { readonly size: number; readonly complete: boolean };
  readonly read: (offset: number, limit: number) => Promise<Uint8Array<ArrayBuffer>>;
  /** Resolves to what the control plane has then. */
  readonly send: (offset: number, bytes: Uint8Array<ArrayBuffer>, signal: AbortSignal) => Promise<number>;
  readonly onSent: (size: number) => void;
  /** From an earlier agent. */
  readonly sent: number;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
}

/** refused: for good, and the rest is given up. closed: the agent stops. */
export type UploadEnd = { readonly end: 'sent' | 'closed' } | { readonly end: 'refused'; readonly error: ApiError };

const pieceBytesMax = 1024 * 1024;
const retry = { delayMsMin: 100, delayMsMax: 3000 };
/** A store that is full may be given room meanwhile, and one that knows no such instance may be behind. */
const patienceMs = 600_000;

export class RunUpload {
  readonly #options: UploadOptions;
  #sent: number;
  #wake: (() => void) | undefined;

  constructor(options: UploadOptions) {
    this.#options = options;
    this.#sent = options.sent;
  }

  /** The file has grown, or is complete. */
  wake(): void {
    this.#wake?.();
  }

  /** Never rejects. */
  async run(signal: AbortSignal): Promise<UploadEnd> {
    const { clock, prng, log, state } = this.#options;
    let refusedSinceMs: number | undefined;
    for (let attempt = 0; !signal.aborted; ) {
      const { size, complete } = state();
      if (this.#sent >= size) {
        if (complete) return { end: 'sent' };
        await this.#change(signal);
        continue;
      }
      try {
        await this.#piece(signal);
        attempt = 0;
        refusedSinceMs = undefined;
      } catch (error) {
        if (signal.aborted) break;
        if (isPatient(error)) refusedSinceMs ??= clock.monotonicMs();
        const waitedMs = refusedSinceMs === undefined ? 0 : clock.monotonicMs() - refusedSinceMs;
        if (error instanceof ApiError && (error.code === 'PayloadTooLarge' || waitedMs > patienceMs))
          return { end: 'refused', error };
        if (attempt === 0)
          log.debug('cannot send what a run has written; trying again', { error: describeError(error) });
        await sleep(clock, backoffMs(attempt++, retry, prng), signal);
      }
    }
    return { end: 'closed' };
  }

  async #piece(signal: AbortSignal): Promise<void> {
    const { read, send, onSent } = this.#options;
    try {
      const bytes = await read(this.#sent, pieceBytesMax);
      this.#sent = await send(this.#sent, bytes, signal);
    } catch (error) {
      const size = sizeAtServer(error);
      if (size === undefined || size === this.#sent) throw error;
      this.#sent = size;
    }
    // A control plane that has more than this host is of another time: nothing is left to send.
    onSent(this.#sent);
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        signal.removeEventListener('abort', done);
        this.#wake = undefined;
        resolve();
      };
      this.#wake = done;
      signal.addEventListener('abort', done, { once: true });
      if (signal.aborted) done();
    });
  }
}

function isPatient(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 'StoreFull' || error.code === 'NotFound');
}

/** Of a gap: where the control plane goes on. */
function sizeAtServer(error: unknown): number | undefined {
  if (!(error instanceof ApiError) || error.code !== 'Conflict') return undefined;
  const size = isRecord(error.details) ? error.details['size'] : undefined;
  return typeof size === 'number' && Number.isSafeInteger(size) && size >= 0 ? size : undefined;
}
