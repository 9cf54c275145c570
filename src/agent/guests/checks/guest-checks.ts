// The checks of this host's guests: one prober for each guest that runs and has checks. What they have shown of a run is in the ledger, so
// that the next agent goes on with it. It never starts or ends a guest.

import type { FailingCheck } from '../../../api/resources/check.ts';
import { isToStartAgain } from '../../../api/resources/instance.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Prng } from '../../../base/prng.ts';
import type { Driver, Guest } from '../../drivers/driver.ts';
import type { GuestFailure, Ledger, LedgerEntry } from '../../ledger/ledger.ts';
import { isUp } from '../guest-state.ts';
import { GuestProber, textOfChecks } from './guest-prober.ts';
import { Slots } from './slots.ts';

export interface GuestChecksOptions {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly prng: Prng;
  /** What the checks of an instance show has changed. */
  readonly onChange: (instanceId: string) => void;
}

interface Watched {
  readonly incarnation: number;
  readonly runAtMs: number;
  readonly prober: GuestProber;
}

/** Attempts at the same time on this host; the others wait, and their time does not run. */
const attemptsMax = 64;

export class GuestChecks {
  readonly #options: GuestChecksOptions;
  readonly #slots = new Slots(attemptsMax);
  readonly #watched = new Map<string, Watched>();
  #closed = false;

  constructor(options: GuestChecksOptions) {
    this.#options = options;
  }

  /** The guest or what is wanted of it may have changed. */
  look(entry: LedgerEntry, seen: { readonly driver: Driver; readonly guest: Guest } | undefined): void {
    const { assignment } = entry;
    const { instanceId, checks, incarnation } = assignment;
    const known = this.#watched.get(instanceId);
    const wanted =
      !this.#closed &&
      (assignment.want === 'running' || assignment.want === 'suspended') &&
      seen?.guest.incarnation === incarnation &&
      isUp(seen.guest);
    if (!wanted || checks === undefined || seen === undefined) return this.forget(instanceId);
    const runAtMs = seen.guest.startedAtMs ?? 0;
    const same = known?.incarnation === incarnation && known.runAtMs === runAtMs;
    const paused = seen.guest.state === 'suspended';
    if (same && textOfChecks(known.prober.checks) === textOfChecks(checks)) return known.prober.setPaused(paused);
    this.forget(instanceId);
    const kept = entry.checks?.runAtMs === runAtMs ? entry.checks : undefined;
    const { clock, prng } = this.#options;
    const prober = new GuestProber({
      ...{ driver: seen.driver, instanceId, checks, kept, clock, prng, slots: this.#slots },
      onChange: () => this.#changed(instanceId),
    });
    prober.setPaused(paused);
    this.#watched.set(instanceId, { incarnation, runAtMs, prober });
  }

  /** What holds a guest back that runs; undefined: it has no checks, or passes them. */
  failingOf({ assignment }: LedgerEntry, guest: Guest): FailingCheck | undefined {
    return this.#of(assignment.instanceId, guest)?.prober.tally.failing;
  }

  /** Whether a guest that runs is ready; undefined: its checks do not say. */
  readyOf(entry: LedgerEntry, guest: Guest): boolean | undefined {
    const { checks, instanceId } = entry.assignment;
    if (checks?.readiness === undefined && checks?.startup === undefined) return undefined;
    const tally = this.#of(instanceId, guest)?.prober.tally;
    // Before the guest is looked at, as after a restart of the agent, what is in the ledger counts.
    const kept = entry.checks?.runAtMs === (guest.startedAtMs ?? 0) ? entry.checks : undefined;
    const { started, passing } = tally ?? kept ?? { started: false, passing: false };
    if (checks.readiness !== undefined) return started && passing;
    return started ? undefined : false;
  }

  forget(instanceId: string): void {
    this.#watched.get(instanceId)?.prober.close();
    this.#watched.delete(instanceId);
  }

  close(): void {
    this.#closed = true;
    for (const instanceId of this.#watched.keys()) this.forget(instanceId);
  }

  #of(instanceId: string, guest: Guest): Watched | undefined {
    const watched = this.#watched.get(instanceId);
    const same = watched?.incarnation === guest.incarnation && watched.runAtMs === (guest.startedAtMs ?? 0);
    return same ? watched : undefined;
  }

  #changed(instanceId: string): void {
    const { ledger, onChange } = this.#options;
    const watched = this.#watched.get(instanceId);
    const entry = ledger
      .entriesOf(instanceId)
      .find(({ assignment }) => assignment.incarnation === watched?.incarnation);
    if (watched === undefined || entry === undefined) return;
    const { started, passing, dead } = watched.prober.tally;
    ledger.noteChecks(entry, {
      ...{ runAtMs: watched.runAtMs, started, passing },
      ...(dead === undefined ? {} : { dead }),
    });
    onChange(instanceId);
  }
}

/** The reason of a guest that was ended because of a check. */
export const checkFailed = {
  startup: 'StartupCheckFailed',
  readiness: 'ReadinessCheckFailed',
  liveness: 'LivenessCheckFailed',
};

/** Why this run of a guest is over, whether or not it still runs: a check failed for good, and its owner has not ordered another start. */
export function deadOf({ assignment, checks }: LedgerEntry, guest: Guest | undefined): GuestFailure | undefined {
  if (checks?.dead === undefined || guest === undefined || guest.incarnation !== assignment.incarnation)
    return undefined;
  const { startedAtMs = 0 } = guest;
  if (checks.runAtMs !== startedAtMs) return undefined;
  if (isToStartAgain({ state: 'failed', startedAtMs }, assignment.startAgain) && !isUp(guest)) return undefined;
  return { code: checkFailed[checks.dead.name], message: checks.dead.message };
}
