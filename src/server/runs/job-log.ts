// The log of one attempt of a job, read from an offset on; followed until its outcome is recorded and all of it was read.

import type { Clock } from '../../base/clock.ts';
import { isFinal, type JobAttempt } from '../../api/resources/job.ts';
import type { Cache } from '../../core/state/cache.ts';
import type { RunFiles } from './run-files.ts';
import type { RunFile } from './run-storage.ts';

interface Which {
  /** Key and id of the job. */
  readonly key: string;
  readonly id: string;
  /** Number of the attempt, which may not exist yet. */
  readonly attempt: number;
}

interface LogParts {
  readonly cache: Cache;
  readonly runFiles: RunFiles;
  readonly clock: Clock;
}

/** How long the end of a log may be on its way after the outcome is recorded: shared storage may show it late. */
const lateMsMax = 10_000;

export class JobLog {
  readonly #parts: LogParts;
  readonly #which: Which;

  constructor(parts: LogParts, which: Which) {
    this.#parts = parts;
    this.#which = which;
  }

  /** The first piece is empty, so that the answer begins before there is anything to read. */
  async *read(
    { offset, follow }: { readonly offset: number; readonly follow: boolean },
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array, void> {
    const { runFiles, clock } = this.#parts;
    yield new Uint8Array();
    let at = offset;
    let overSinceMs: number | undefined;
    while (!signal.aborted) {
      const { attempt, over } = this.#look(); // before the file is read: what was written until then is in it
      const file: RunFile = { instanceId: attempt?.instanceId ?? '', part: 'log' };
      if (attempt) {
        for await (const chunk of runFiles.read(file, at)) {
          at += chunk.byteLength;
          yield chunk;
        }
      }
      if (!follow) return;
      if (over) {
        overSinceMs ??= clock.monotonicMs();
        const late = clock.monotonicMs() - overSinceMs;
        if (at >= (attempt?.logBytes ?? 0) || late >= lateMsMax) return;
      }
      await runFiles.grown(file, signal);
    }
  }

  #look(): { readonly attempt?: JobAttempt; readonly over: boolean } {
    const { key, id, attempt: number } = this.#which;
    const job = this.#parts.cache.committed('job', key)?.value;
    if (job?.metadata.id !== id) return { over: true }; // deleted
    const attempt = job.status.attempts.find((each) => each.number === number);
    if (attempt) return { attempt, over: attempt.outcome !== undefined };
    return { over: isFinal(job.status.phase) };
  }
}
