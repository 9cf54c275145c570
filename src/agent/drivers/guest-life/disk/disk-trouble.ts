// Notices that a running guest cannot use its disk, tells why, and lets a paused guest go on when there is room again. Never
// resumes a guest that is paused for any other reason.
//
//   running ─ no room ─► paused (DiskFull) ─ resume ─► running, told so once it has lasted
//                              ▲──── still no room ──────┘
//   any other error: the guest saw it and runs on; it is reported (DiskError) until the guest is started again

import { backoffMs } from '../../../../base/backoff.ts';
import { type Clock, sleep } from '../../../../base/clock.ts';
import { describeError, type Logger } from '../../../../base/log.ts';
import type { Prng } from '../../../../base/prng.ts';

export interface DiskTrouble {
  readonly code: 'DiskFull' | 'DiskError';
  readonly message: string;
}

/** A guest's hypervisor. Every function may throw: then it is tried again. */
export interface DiskSession {
  /** Whether the guest is paused because it could not use its disk, and for no other reason. */
  paused(): Promise<boolean>;
  resume(): Promise<void>;
}

export interface DiskWatch {
  /** The guest was paused because it could not use its disk; `noRoom`: because the disk is full. */
  paused(noRoom: boolean): void;
  /** The guest saw an error, and runs on. */
  reported(): void;
  /** Calls `listener` with what is wrong, now if anything is, and after every change; undefined: nothing is any more. */
  listen(listener: (trouble: DiskTrouble | undefined) => void): void;
}

const retry = { delayMsMin: 1000, delayMsMax: 15_000 }; // an attempt costs one failed write
const lastingMs = 1000; // QEMU repeats the failed write at once: what fails again has done so by then

export function watchDisk(options: {
  /** Of the guest, for people. */
  readonly directory: string;
  /** Undefined while there is no connection. */
  readonly session: () => DiskSession | undefined;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Aborts when the guest is no longer watched. */
  readonly signal: AbortSignal;
}): DiskWatch {
  const { directory, clock, prng, log, signal } = options;
  const listeners = new Set<(trouble: DiskTrouble | undefined) => void>();
  let trouble: DiskTrouble | undefined;
  let resuming = false;

  const tell = (next: DiskTrouble | undefined): void => {
    if (next?.code === trouble?.code && next?.message === trouble?.message) return;
    trouble = next;
    if (next !== undefined) log.warn('a guest cannot use its disk', { ...next });
    for (const listener of listeners) listener(next);
  };

  const paused = (noRoom: boolean): void => {
    tell(noRoom ? full(directory) : broken(directory, 'paused; it is tried again'));
    if (resuming) return;
    resuming = true;
    void resume().finally(() => {
      resuming = false;
    });
  };

  /** Ends when the guest runs for good, or is not ours to resume any more. */
  const resume = async (): Promise<void> => {
    for (let attempt = 0; !signal.aborted; attempt++) {
      await sleep(clock, backoffMs(attempt, retry, prng), signal);
      const session = options.session();
      if (signal.aborted || session === undefined) continue; // later there is one again
      try {
        if (await session.paused()) {
          await session.resume();
          await sleep(clock, lastingMs, signal);
        }
        if (signal.aborted || (await session.paused())) continue;
        log.info('a guest can use its disk again');
        return tell(undefined);
      } catch (error) {
        log.debug('cannot resume a guest; trying again', { error: describeError(error) });
      }
    }
  };

  return {
    paused,
    reported: () => tell(broken(directory, 'told of it, and may have made its disk read-only: its console says')),
    listen(listener) {
      listeners.add(listener);
      if (trouble !== undefined) listener(trouble);
    },
  };
}

const full = (directory: string): DiskTrouble => ({
  code: 'DiskFull',
  message: `the guest is paused: no room is left below ${directory}; remove guests or images, or give the host more disk, and it goes on by itself`,
});

const broken = (directory: string, outcome: string): DiskTrouble => ({
  code: 'DiskError',
  message: `the disk below ${directory} gave an error, and the guest was ${outcome}; look at the kernel's log on the host`,
});
