// Prints the output of a job while it runs, attempt after attempt, until the job has ended. It continues at the same byte when
// the server, the connection or the stream ends, so no line is lost or printed twice.

import { sleep } from '../../base/clock.ts';
import { describeError } from '../../base/log.ts';
import { ApiError } from '../../api/errors.ts';
import type { Job, JobAttempt } from '../../api/resources/job.ts';
import type { Cli, Output } from '../cli.ts';
import { CommandError, exitCodes, Interrupted } from '../exit-codes.ts';
import { type Progress, startProgress } from '../print/progress.ts';
import { consoleFilter, visible } from '../print/terminal.ts';
import { writeOut } from '../print/write-out.ts';
import type { Session } from '../session.ts';
import { hasEnded, standing } from './job-view.ts';
import { type LogText, LogLines } from './log-lines.ts';

export interface JobOutputOptions {
  readonly cli: Cli;
  readonly session: Session;
  readonly job: Job;
  readonly timestamps: boolean;
  /** Leaves the job alone: `Interrupted` is thrown. */
  readonly signal: AbortSignal;
}

const retryMs = 500;
const lookMs = 1_000;
/** How often the end of a log is asked for that the server says it has, and does not send. */
const fruitlessMax = 3;

export class JobOutput {
  readonly #options: JobOutputOptions;
  #lines: LogLines;
  #filters = new Map<Output, ReturnType<typeof consoleFilter>>();
  /** What of the attempt's log is printed. */
  #offset = 0;
  #silent = false;

  constructor(options: JobOutputOptions) {
    this.#options = options;
    this.#lines = new LogLines(options);
  }

  /** Prints what there is of an attempt. */
  async print(attempt: number | undefined): Promise<void> {
    const { session, job, signal } = this.#options;
    const query = { project: session.project, ...(attempt === undefined ? {} : { attempt }) };
    try {
      for await (const chunk of session.client.jobLog(job.metadata.name, query, signal)) await this.#write(chunk);
    } catch (error) {
      throw signal.aborted ? new Interrupted() : error;
    } finally {
      this.#endLines();
    }
  }

  /** Prints one attempt to its end. Returns the job as it is then. */
  async followAttempt(number: number): Promise<Job> {
    this.#offset = 0;
    this.#lines = new LogLines(this.#options);
    const waiting = new Waiting(this.#options, () => this.#get());
    try {
      return await this.#follow(number, waiting);
    } finally {
      waiting.end();
      this.#endLines();
    }
  }

  /** Prints all attempts from this one on. Returns the job as it ended. */
  async followAll(from: number): Promise<Job> {
    const { cli, job } = this.#options;
    for (let number = from; ; number += 1) {
      const now = await this.followAttempt(number);
      if (hasEnded(now.status.phase) && number >= now.status.attempt) return now;
      const message = now.status.attempts.find((each) => each.number === number)?.message ?? 'it failed';
      cli.stderr.write(
        `berth: attempt ${number} of job "${job.metadata.name}" failed: ${visible(message)}; another follows\n`,
      );
    }
  }

  async #follow(number: number, waiting: Waiting): Promise<Job> {
    const { cli, job, signal } = this.#options;
    for (let fruitless = 0; ; ) {
      const before = this.#offset;
      await this.#stream(number, waiting);
      const now = await this.#get();
      const attempt = now.status.attempts.find((each) => each.number === number);
      if (isOver(now, attempt)) {
        const missing = (attempt?.logBytes ?? 0) - this.#offset;
        if (missing <= 0) return now;
        fruitless = this.#offset === before ? fruitless + 1 : 0;
        if (fruitless >= fruitlessMax) {
          cli.stderr.write(`berth: ${missing} bytes of the log of job "${job.metadata.name}" are missing\n`);
          return now;
        }
      }
      await this.#pause(signal);
    }
  }

  /** Until the stream ends, for whatever reason. */
  async #stream(number: number, waiting: Waiting): Promise<void> {
    const { session, job, signal } = this.#options;
    const query = { project: session.project, attempt: number, offset: this.#offset, follow: true };
    try {
      for await (const chunk of session.client.jobLog(job.metadata.name, query, signal)) {
        if (chunk.byteLength === 0) continue;
        waiting.end();
        this.#offset += chunk.byteLength;
        await this.#write(chunk);
      }
    } catch (error) {
      if (signal.aborted) throw new Interrupted();
      if (error instanceof ApiError && error.code !== 'Unavailable' && error.code !== 'NotFound') throw error;
      // Whether the server is away, or the job is, is what the next question tells.
    }
    if (signal.aborted) throw new Interrupted();
  }

  /** The job as it is now; waits for a server that is away. */
  async #get(): Promise<Job> {
    const { cli, session, job, signal } = this.#options;
    const { name, id } = job.metadata;
    for (;;) {
      try {
        const now = await session.client.get('job', name, { project: session.project });
        if (now.metadata.id !== id) throw new ApiError('NotFound', `another job is called "${name}" now`);
        this.#silent = false;
        return now;
      } catch (error) {
        if (signal.aborted) throw new Interrupted();
        if (error instanceof ApiError && error.code === 'NotFound')
          throw new CommandError(exitCodes.badOutcome, `job "${name}" was removed before its end was known`, {
            advice: '"berth job ls" shows the jobs',
          });
        if (error instanceof ApiError && error.code !== 'Unavailable') throw error;
        if (!this.#silent)
          cli.stderr.write(`berth: no answer from the server (${visible(describeError(error))}); trying again\n`);
        this.#silent = true;
        await this.#pause(signal);
      }
    }
  }

  async #pause(signal: AbortSignal): Promise<void> {
    await sleep(this.#options.cli.clock, retryMs, signal);
    if (signal.aborted) throw new Interrupted();
  }

  async #write(chunk: Uint8Array): Promise<void> {
    for (const { stream, bytes } of this.#lines.push(chunk))
      await writeOut(this.#outputOf(stream), this.#shown(stream, bytes));
  }

  #outputOf(stream: LogText['stream']): Output {
    return this.#options.cli[stream];
  }

  /** On a terminal control sequences are escaped; elsewhere the bytes are unchanged. */
  #shown(stream: LogText['stream'], bytes: Uint8Array): Uint8Array {
    const output = this.#outputOf(stream);
    if (!output.isTTY) return bytes;
    const filter = this.#filters.get(output) ?? consoleFilter();
    this.#filters.set(output, filter);
    return Buffer.from(filter.push(bytes));
  }

  #endLines(): void {
    for (const [output, filter] of this.#filters) output.write(filter.end());
    this.#filters.clear();
  }
}

function isOver({ status }: Job, attempt: JobAttempt | undefined): boolean {
  return attempt ? attempt.outcome !== undefined : hasEnded(status.phase);
}

/** A line on the terminal about what the job waits for, until there is output. */
class Waiting {
  readonly #over = new AbortController();
  readonly #progress: Progress | undefined;

  constructor({ cli, job }: JobOutputOptions, look: () => Promise<Job>) {
    if (cli.stderr.isTTY !== true) return;
    const progress = startProgress(cli);
    this.#progress = progress;
    void this.#show(cli, job, { look, progress });
  }

  end(): void {
    this.#over.abort();
    this.#progress?.end();
  }

  async #show(cli: Cli, job: Job, { look, progress }: { look: () => Promise<Job>; progress: Progress }): Promise<void> {
    const { signal } = this.#over;
    progress.update(`${job.metadata.name}: ${standing(job, cli.clock.nowMs())}`);
    for (;;) {
      await sleep(cli.clock, lookMs, signal);
      if (signal.aborted) return;
      const now = await look().catch(() => undefined); // the one that prints tells it
      if (signal.aborted || !now) return;
      progress.update(`${job.metadata.name}: ${standing(now, cli.clock.nowMs())}`);
    }
  }
}
