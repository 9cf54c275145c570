// Sends the commit statuses of one hook, one at a time. Level-triggered: it is given the jobs that may have something to
// send, and looks what that is when their turn comes, so that stages which have passed are never sent.

import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { Job } from '../../../api/resources/job.ts';
import { type CommitStatus, recordCommitStatus, statusToSend } from '../../../core/operations/jobs/webhook-status.ts';
import type { Entry } from '../../../core/state/snapshot.ts';
import { decideAndCommit, type Decider } from '../../decide.ts';
import { askForge } from '../../intake/forges/forge-api.ts';
import type { ConfiguredHook } from '../../intake/forges/forge-config.ts';
import { verdictOf } from './rate.ts';

export interface SenderParts {
  readonly decider: Decider;
  readonly hook: ConfiguredHook;
  readonly fetch: typeof fetch;
  readonly externalUrl: string | undefined;
  readonly leads: () => boolean;
  readonly log: Logger;
}

const requestTimeoutMs = 10_000;
/** GitHub allows 80 such requests in a minute. */
const spacingMs = { github: 750, forgejo: 0 } as const;
/** After a commit that failed. */
const retryMs = 5_000;

export class StatusSender {
  readonly #parts: SenderParts;
  readonly #clock: Clock;
  /** Keys of jobs, the one that waits longest first. */
  readonly #queue = new Set<string>();
  readonly #stopping = new AbortController();
  /** Aborts the request that is under way. */
  #term = new AbortController();
  /** How often the forge has forbidden the status of a job. */
  readonly #forbidden = new Map<string, number>();
  #failures = 0;
  #trouble: string | undefined;
  #pausedUntilMs = 0;
  #working: Promise<void> | undefined;

  constructor(parts: SenderParts) {
    this.#parts = parts;
    this.#clock = parts.decider.clock;
  }

  /** Why the last status was not taken; undefined: it was. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  add(key: string): void {
    if (this.#stopping.signal.aborted) return;
    this.#queue.add(key);
    this.#working ??= this.#work();
  }

  /** Resolves when nothing is under way. A status whose answer did not come may be sent again by another process. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.stepDown();
    await this.#working;
  }

  /** Before another process leads: what is under way must not arrive after what that one sends. */
  stepDown(): void {
    this.#queue.clear();
    this.#term.abort();
    this.#term = new AbortController();
  }

  async #work(): Promise<void> {
    for (let key = this.#first(); key !== undefined; key = this.#first()) {
      await this.#pass();
      if (this.#stopping.signal.aborted) break;
      this.#queue.delete(key);
      await this.#look(key);
    }
    this.#working = undefined;
  }

  #first(): string | undefined {
    const [first] = this.#queue;
    return first;
  }

  /** Waits for the end of the pause. */
  async #pass(): Promise<void> {
    const pauseMs = this.#pausedUntilMs - this.#clock.monotonicMs();
    // Even without a pause there is one turn, so that #work never ends before `add` has its promise.
    await (pauseMs > 0 ? sleep(this.#clock, pauseMs, this.#stopping.signal) : Promise.resolve());
  }

  async #look(key: string): Promise<void> {
    const { decider, leads } = this.#parts;
    // A leader looks at all jobs when it begins to lead, so another one forgets them.
    const entry = leads() ? decider.cache.committed('job', key) : undefined;
    const status = entry && statusToSend(decider.cache, entry);
    if (entry === undefined || status === undefined) this.#forbidden.delete(key);
    else await this.#send(entry, status);
  }

  async #send(entry: Entry<Job>, status: CommitStatus): Promise<void> {
    const { hook, fetch, decider, log } = this.#parts;
    const { key, value } = entry;
    const { signal } = this.#term;
    const answer = await askForge({ fetch, clock: this.#clock }, hook, {
      ...this.#requestOf(value, status),
      timeoutMs: requestTimeoutMs,
      signal,
    });
    if (answer.status === 0 && signal.aborted) return;
    const forbidden = this.#forbidden.get(key) ?? 0;
    const verdict = verdictOf(answer, {
      nowMs: this.#clock.nowMs(),
      prng: decider.prng,
      failures: this.#failures,
      forbidden,
    });
    this.#trouble = verdict.kind === 'accepted' ? undefined : verdict.error;
    const fields = { hook: hook.name, job: value.metadata.name, stage: status.stage };
    if (verdict.kind === 'later') {
      log.warn('commit status not sent; it is tried again', { ...fields, ...verdict });
      this.#failures += 1;
      if (answer.status === 401 || answer.status === 403) this.#forbidden.set(key, forbidden + 1);
      return this.#later(key, verdict.pauseMs);
    }
    this.#failures = 0;
    this.#forbidden.delete(key);
    this.#pause(spacingMs[hook.forge]);
    if (verdict.kind === 'accepted') return this.#record(entry, { state: status.stage, final: status.final });
    log.error('the forge refuses a commit status', { ...fields, error: verdict.error });
    const state = value.status.commitStatus?.state ?? 'none';
    return this.#record(entry, { state, final: true, error: verdict.error });
  }

  #requestOf({ spec, metadata }: Job, { state, description }: CommitStatus) {
    const { externalUrl } = this.#parts;
    const { repository, sha, context } = spec.forge ?? { repository: '', sha: '', context: '' };
    const log = `/v1/jobs/${metadata.name}/log?project=${encodeURIComponent(metadata.project)}`;
    return {
      method: 'POST',
      path: `repos/${repository}/statuses/${sha}`,
      json: { state, description, context, ...(externalUrl === undefined ? {} : { target_url: externalUrl + log }) },
    } as const;
  }

  /** When it fails, the status is sent again. */
  async #record({ key, value }: Entry<Job>, commitStatus: NonNullable<Job['status']['commitStatus']>): Promise<void> {
    const { decider, log } = this.#parts;
    const { id, name } = value.metadata;
    try {
      await decideAndCommit(decider, (snapshot) => recordCommitStatus(snapshot, { key, id, commitStatus }));
    } catch (error) {
      log.warn('a sent commit status cannot be recorded; it is sent again', { job: name, error: describeError(error) });
      return this.#later(key, retryMs);
    }
    this.#queue.add(key); // the job may have gone on meanwhile
  }

  #later(key: string, pauseMs: number): void {
    this.#pause(pauseMs);
    this.#queue.add(key);
  }

  #pause(pauseMs: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, this.#clock.monotonicMs() + pauseMs);
  }
}
