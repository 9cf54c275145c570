// One step of one spare: made, asked until it is ready, or released.

import { sleep } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { Spare } from '../../api/resources/spare.ts';
import { claimStep } from '../../core/operations/spares/claim-step.ts';
import { reportSpare, type SpareReport, type SpareStep } from '../../core/operations/spares/report-spare.ts';
import { type Decider, decideAndCommit, forProject } from '../decide.ts';
import type { Fence } from '../leadership.ts';
import type { Probe, Provisioner, SpareRun } from './provisioner.ts';
import { probedOf, workOf } from './spare-work.ts';

/** What every step needs. */
export interface SparesParts {
  readonly decider: Decider;
  /** By name; without the built-in one, which the core decides. */
  readonly provisioners: ReadonlyMap<string, Provisioner>;
  readonly probe: Probe;
  readonly log: Logger;
}

interface SpareTaskParts extends SparesParts {
  readonly spare: Spare;
  readonly step: SpareStep;
  /** Holds while this server leads. */
  readonly fence: Fence;
  /** The end of what this process did for the spare before: its call must not arrive after ours. */
  readonly former: Promise<void> | undefined;
}

/** Notes of progress are written at most this often. */
const progressMs = 5_000;
/** A report that cannot be written is tried again: without it the step stands still. */
const reportRetryMs = 1_000;
const probeMs = 10_000;

export class SpareTask {
  readonly #parts: SpareTaskParts;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  /** An earlier call for this attempt may have been made. */
  #resumed = false;
  #note: string | undefined;
  #toldAtMs = 0;

  constructor(parts: SpareTaskParts) {
    this.#parts = parts;
    this.#running = this.#run();
  }

  isFor({ id, phase, attempt }: SpareStep): boolean {
    const { step } = this.#parts;
    return step.id === id && step.phase === phase && step.attempt === attempt;
  }

  /** What runs elsewhere goes on. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    let report: SpareReport | undefined;
    if (this.#parts.former) await this.#parts.former;
    if (this.#callsProvisioner() && !(await this.#claimed())) return;
    try {
      report = await this.#carriedOut();
    } catch (error) {
      report = { is: 'failed', why: describeError(error) };
    }
    // What an aborted call says of its end is not the end of the work.
    while (report && !this.#stopping.signal.aborted && !(await this.#tell(report)))
      await sleep(this.#parts.decider.clock, reportRetryMs, this.#stopping.signal);
  }

  #callsProvisioner(): boolean {
    const { phase } = this.#parts.step;
    return phase === 'Provisioning' || phase === 'Releasing';
  }

  /** Whether the step is for this server to carry out; tries until that is known. */
  async #claimed(): Promise<boolean> {
    const { decider, spare, step, fence, log } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        const own = forProject(spare.metadata.project, decider);
        const { decision } = await decideAndCommit(own, (snapshot) => claimStep(snapshot, { step, fence }));
        this.#resumed = decision.is === 'resumed';
        return decision.is !== 'over' && !signal.aborted;
      } catch (error) {
        log.warn('a step of a spare cannot be begun', { spare: step.id, why: describeError(error) });
        await sleep(decider.clock, reportRetryMs, signal);
      }
    }
    return false;
  }

  async #carriedOut(): Promise<SpareReport | undefined> {
    const { spare, step } = this.#parts;
    if (step.phase === 'Checking') return this.#checked();
    const provisioner = this.#parts.provisioners.get(spare.spec.provisioner);
    if (provisioner === undefined) {
      const why = `no server has a provisioner "${spare.spec.provisioner}" in its configuration`;
      const { attempt, phase } = step;
      const isFirst = phase === 'Provisioning' && attempt === 1 && !this.#resumed;
      return isFirst ? { is: 'refused', why } : { is: 'failed', why, refused: true };
    }
    return step.phase === 'Releasing' ? this.#released(provisioner) : this.#provisioned(provisioner);
  }

  async #provisioned(provisioner: Provisioner): Promise<SpareReport> {
    const outcome = await provisioner.provision(this.#work(), this.#spareRun());
    return outcome.is === 'done' ? { ...outcome, is: 'provisioned' } : outcome;
  }

  async #released(provisioner: Provisioner): Promise<SpareReport> {
    const outcome = await provisioner.release(this.#work(), this.#spareRun());
    return outcome.is === 'done' ? { is: 'released' } : outcome;
  }

  /** Until it is ready, or can never be; its time limit is the core's. */
  async #checked(): Promise<SpareReport | undefined> {
    const { spare, probe, decider } = this.#parts;
    const { signal } = this.#stopping;
    const { ready } = spare.spec;
    if (ready === undefined) return { is: 'ready', message: 'nothing is asked' };
    const asked = probedOf(spare, decider.cache);
    while (!signal.aborted) {
      const answer = await probe(ready, asked, { timeoutMs: probeMs, signal });
      if (answer.ready) return { is: 'ready', message: answer.message };
      if (answer.failed) return { is: 'failed', why: answer.message };
      this.#progress(answer.message);
      await sleep(decider.clock, ready.periodMs, signal);
    }
    return undefined;
  }

  #work() {
    return workOf(this.#parts.spare, this.#parts.decider.cache);
  }

  #spareRun(): SpareRun {
    return { signal: this.#stopping.signal, resumed: this.#resumed, progress: (note) => this.#progress(note) };
  }

  #progress(note: string): void {
    const nowMs = this.#parts.decider.clock.monotonicMs();
    if (note === '' || note === this.#note || (this.#note !== undefined && nowMs - this.#toldAtMs < progressMs)) return;
    this.#note = note;
    this.#toldAtMs = nowMs;
    void this.#tell({ is: 'progress', message: note });
  }

  /** Whether it was written, or is no longer wanted. */
  async #tell(report: SpareReport): Promise<boolean> {
    const { decider, spare, step, log } = this.#parts;
    try {
      const own = forProject(spare.metadata.project, decider);
      await decideAndCommit(own, (snapshot, ctx) => reportSpare(snapshot, { step, report }, ctx));
      return true;
    } catch (error) {
      log.warn('what came of a step of a spare cannot be written', { spare: step.id, why: describeError(error) });
      return false;
    }
  }
}
