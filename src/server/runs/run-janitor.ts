// Removes files of runs: those of instances that nothing names any more, and the oldest of ended attempts where a project has
// too much. Level-triggered: each pass looks at everything there is. Only the leader's passes remove something.

import { mebibyte } from '../../base/bytes.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { RunFiles } from './run-files.ts';
import type { StoredRun } from './run-storage.ts';

export interface RunJanitorParts {
  readonly runFiles: RunFiles;
  readonly cache: Snapshot;
  readonly clock: Clock;
  readonly log: Logger;
  readonly leads: () => boolean;
}

/** A pass reads the size of each file: some 30,000 for the 10,000 jobs that are kept by default. */
const passEveryMs = 300_000;
/** A pass is early when this much has arrived since the last one. */
const lookEveryMs = 30_000;
const appendedBytesMax = 256 * mebibyte;

export class RunJanitor {
  readonly #parts: RunJanitorParts;
  /** What nothing named at the last pass: it is removed if the next pass agrees. */
  #suspects: ReadonlySet<string> = new Set();
  #passedAtMs: number;
  #appendedBytes = 0;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(parts: RunJanitorParts) {
    this.#parts = parts;
    this.#passedAtMs = parts.clock.monotonicMs();
  }

  start(): void {
    if (this.#stopped) return;
    this.#timer = this.#parts.clock.setTimer(lookEveryMs, () => void this.#look().finally(() => this.start()), {
      background: true,
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** Never throws. */
  async pass(): Promise<void> {
    const { runFiles, clock, log } = this.#parts;
    this.#passedAtMs = clock.monotonicMs();
    this.#appendedBytes = runFiles.appendedBytes;
    try {
      await this.#removeUnnamed(await runFiles.list());
      await this.#removeOverLimit(await runFiles.list());
    } catch (error) {
      log.warn('cannot look through the files of runs', { error: describeError(error) });
    }
  }

  async #look(): Promise<void> {
    const { clock, runFiles, leads } = this.#parts;
    if (!leads()) {
      this.#suspects = new Set();
      return;
    }
    const due = clock.monotonicMs() - this.#passedAtMs >= passEveryMs;
    if (due || runFiles.appendedBytes - this.#appendedBytes >= appendedBytesMax) await this.pass();
  }

  /**
   * Twice, with a pause between: a host may write for an instance that another control plane has created, before this one knows
   * of it.
   */
  async #removeUnnamed(runs: readonly StoredRun[]): Promise<void> {
    const { cache, log, runFiles } = this.#parts;
    const named = new Set<string>();
    for (const { value } of cache.list('job'))
      for (const { instanceId } of value.status.attempts) named.add(instanceId);
    const unnamed = runs.filter(({ instanceId }) => !named.has(instanceId) && !cache.instanceById(instanceId));
    for (const { instanceId, bytes } of unnamed) {
      if (!this.#suspects.has(instanceId)) continue;
      log.debug('removing the files of a run that nothing names', { instance: instanceId, bytes });
      await runFiles.remove(instanceId);
    }
    this.#suspects = new Set(unnamed.map(({ instanceId }) => instanceId));
  }

  async #removeOverLimit(runs: readonly StoredRun[]): Promise<void> {
    const { runFiles, log } = this.#parts;
    const { projectBytesMax } = runFiles.limits;
    const bytesOf = new Map(runs.map(({ instanceId, bytes }) => [instanceId, bytes]));
    for (const [project, files] of this.#filesByProject(bytesOf)) {
      let total = files.reduce((sum, { bytes }) => sum + bytes, 0);
      const ended = files.filter(({ endedAtMs }) => endedAtMs !== undefined);
      ended.sort((a, b) => (a.endedAtMs ?? 0) - (b.endedAtMs ?? 0));
      for (const { instanceId, bytes } of ended) {
        if (total <= projectBytesMax) break;
        log.info('removing logs and artifacts of an old job: its project has too many', {
          project,
          instance: instanceId,
          bytes,
        });
        await runFiles.remove(instanceId);
        total -= bytes;
      }
    }
  }

  #filesByProject(bytesOf: ReadonlyMap<string, number>): ReadonlyMap<string, FilesOfAttempt[]> {
    const files = new Map<string, FilesOfAttempt[]>();
    for (const { value } of this.#parts.cache.list('job')) {
      const { project } = value.metadata;
      for (const { instanceId, outcome, endedAtMs, createdAtMs } of value.status.attempts) {
        const bytes = bytesOf.get(instanceId);
        if (bytes === undefined) continue;
        const ended = outcome === undefined ? undefined : (endedAtMs ?? createdAtMs);
        const known = files.get(project);
        const one = { instanceId, bytes, endedAtMs: ended };
        if (known) known.push(one);
        else files.set(project, [one]);
      }
    }
    return files;
  }
}

interface FilesOfAttempt {
  readonly instanceId: string;
  readonly bytes: number;
  /** undefined: it is under way. */
  readonly endedAtMs: number | undefined;
}
