// The periodic consistency check: it checks the whole fleet, remembers since when each fault exists, and repairs on request. Repairs are Plans
// like all others, and are logged; it never repairs by itself.

import type { Clock, Timer } from '../base/clock.ts';
import { describeError, type Logger } from '../base/log.ts';
import type { VerifyReport, VerifyRequest, Finding } from '../api/verify.ts';
import { verify } from '../core/verify/verify.ts';
import type { Fault } from '../core/verify/fault.ts';
import type { Context } from '../core/state/context.ts';
import type { Plan } from '../core/state/plan.ts';
import type { Snapshot } from '../core/state/snapshot.ts';
import { isReady } from '../core/state/conditions.ts';
import { type Decider, decideAndCommit } from './decide.ts';
import { inSlices } from './in-slices.ts';

/** Between two checks. A check costs a few microseconds per record. */
const lookEveryMs = 30_000;
/** Length of a slice: nothing waits for the end of a check, and a request is delayed for no longer than a commit takes. */
const lookSliceMs = 2;

/** Commits a repair on behalf of the caller that asked for it. */
type CommitRepair = (
  decide: (snapshot: Snapshot, ctx: Context) => { readonly plan: Plan; readonly mended: boolean },
) => Promise<{ readonly decision: { readonly mended: boolean } }>;

export class Verifier {
  readonly #decider: Decider;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #startedMs: number;
  /** By the key of a fault: since when every check has found it. */
  #sinceMs = new Map<string, number>();
  #findings: readonly Finding[] = [];
  #timer: Timer | undefined;
  #stopped = false;

  constructor(parts: { decider: Decider; log: Logger }) {
    this.#decider = parts.decider;
    this.#clock = parts.decider.clock;
    this.#startedMs = this.#clock.monotonicMs();
    this.#log = parts.log;
  }

  start(): void {
    this.#timer = this.#clock.setTimer(lookEveryMs, () => void this.#goOn(), { background: true });
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** Result of the last check. */
  get findings(): readonly Finding[] {
    return this.#findings;
  }

  /** Checks now; with `apply` repairs, and checks again. */
  async report(
    { apply, removeUnknown, olderThanMs }: VerifyRequest,
    commit: CommitRepair = (decide) => decideAndCommit(this.#decider, decide),
  ): Promise<VerifyReport> {
    const old = (await this.#look()).filter(({ key }) => this.#ageMs(key) >= olderThanMs);
    const repaired = apply ? await this.#repair(old, removeUnknown, commit) : [];
    if (repaired.length > 0) await this.#look();
    const all = this.#findings;
    const findings = all.filter(({ ageMs }) => ageMs >= olderThanMs);
    const { cache } = this.#decider;
    return {
      findings,
      young: all.length - findings.length,
      checked: {
        instances: cache.count('instance'),
        allocations: cache.count('allocation'),
        providers: cache.count('provider'),
        hosts: cache.count('host'),
        hostsHeard: [...cache.list('host')].filter(({ value }) => isReady(value.status)).length,
      },
      watchedMs: Math.round(this.#clock.monotonicMs() - this.#startedMs),
      repaired,
    };
  }

  async #goOn(): Promise<void> {
    try {
      await this.#look();
    } catch (error) {
      this.#log.error('the consistency check failed', { error: describeError(error), cause: error });
    }
    if (!this.#stopped) this.start();
  }

  async #look(): Promise<readonly Fault[]> {
    const { faults, findings, sinceMs } = await inSlices(this.#clock, this.#looking(), lookSliceMs);
    this.#sinceMs = sinceMs;
    this.#findings = findings;
    return faults;
  }

  /** There may be as many faults as instances: handling each is a step of its own, like the search. */
  *#looking(): Generator<void, Look> {
    const look: Look = { faults: [], findings: [], sinceMs: new Map() };
    for (const fault of verify(this.#decider.cache)) {
      if (fault) {
        const nowMs = this.#clock.monotonicMs();
        const sinceMs = this.#sinceMs.get(fault.key) ?? nowMs;
        look.faults.push(fault);
        look.sinceMs.set(fault.key, sinceMs);
        look.findings.push(findingOf(fault, Math.round(nowMs - sinceMs)));
      }
      yield;
    }
    return look;
  }

  async #repair(faults: readonly Fault[], removeUnknown: boolean, commit: CommitRepair): Promise<string[]> {
    const done: string[] = [];
    for (const { key, subject, repair } of faults) {
      if (!repair || (repair.destroys && !removeUnknown)) continue;
      const { decision } = await commit((snapshot, ctx) => {
        const plan = repair.plan(snapshot, ctx);
        return { plan: plan ?? { changes: [] }, mended: plan === null };
      });
      if (decision.mended) continue;
      this.#log.warn('the consistency check repaired a fault', { fault: key, subject, repair: repair.what });
      done.push(repair.what);
    }
    return done;
  }

  #ageMs(key: string): number {
    return Math.round(this.#clock.monotonicMs() - (this.#sinceMs.get(key) ?? this.#clock.monotonicMs()));
  }
}

interface Look {
  readonly faults: Fault[];
  readonly findings: Finding[];
  readonly sinceMs: Map<string, number>;
}

function findingOf({ key: _, repair, ...fault }: Fault, ageMs: number): Finding {
  return {
    ...fault,
    ...(repair ? { repair: repair.what, ...(repair.destroys ? { destroys: true } : {}) } : {}),
    ageMs,
  };
}
