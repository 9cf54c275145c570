// How long a run waits for its guest, and what is said when that was in vain.

import type { Guest } from '../../drivers/driver.ts';
import type { Deadline } from './deadlines.ts';

/** After what the host asked for. */
export const waitsMs = {
  /** For the rest of a line, before a part of it is written. */
  partialLine: 250,
  /** Since the guest is up: a large image under emulation boots for minutes. */
  begin: 900_000,
  /** Twelve pings. */
  silence: 180_000,
  /** After SIGKILL. */
  gone: 15_000,
  artifacts: 1_800_000,
} as const;

/** For the artifacts of a guest that is to stop. */
export const stopFinishingMs = 30_000;

export interface Loss {
  readonly reason: string;
  readonly message: string;
}

export function lossAt(deadline: Exclude<Deadline, 'limit' | 'kill'>): Loss {
  switch (deadline) {
    case 'begin':
      return {
        reason: 'NeverBegan',
        message: `the runner has not come within ${waitsMs.begin / 60_000} minutes of the guest's start; its console says more`,
      };
    case 'gone':
      return { reason: 'GuestSilent', message: 'the guest was to stop, and did not say what became of its program' };
    case 'artifacts':
      return {
        reason: 'ArtifactsLost',
        message: `the artifacts did not arrive within ${waitsMs.artifacts / 60_000} minutes`,
      };
    case 'silence':
      return { reason: 'GuestSilent', message: `the guest has said nothing for ${waitsMs.silence / 1000} s` };
  }
}

/** `ended`: its program had ended before. */
export function lossOfGuest({ state, reason }: Pick<Guest, 'state' | 'reason'>, ended: boolean): Loss {
  const what = ended ? 'before its artifacts arrived' : 'before its program did';
  const why = reason === undefined ? state : `${reason.code}: ${reason.message}`;
  return { reason: ended ? 'ArtifactsLost' : 'GuestEnded', message: `the guest ended ${what}: ${why}` };
}

/** What is missing of artifacts that have come to their end; `exceeded`: the limit that they are beyond. */
export function artifactsFlaw(
  status: number,
  exceeded: { readonly artifactsBytesMax: number } | undefined,
): Partial<Loss> {
  if (exceeded !== undefined) {
    const message = `the artifacts are larger than ${exceeded.artifactsBytesMax} bytes`;
    return { reason: 'ArtifactsTooLarge', message };
  }
  if (status === 0) return {};
  return { reason: 'ArtifactsIncomplete', message: `some artifacts could not be read: tar ended with ${status}` };
}
