// Jobs that webhooks asked for, by the branch they are of and by the delivery that asked, so that no delivery needs a
// list of all jobs.

import type { Job, JobForgeOrigin } from '../../../api/resources/job.ts';
import { defineView, type RecordChange, type Snapshot, type View } from '../snapshot.ts';

export const forgeJobsOf = defineView((snapshot) => new ForgeJobs(snapshot));

type Place = Pick<JobForgeOrigin, 'hook' | 'repositoryId' | 'ref' | 'context'>;
type Commit = Pick<JobForgeOrigin, 'hook' | 'repositoryId' | 'sha' | 'context'>;

class ForgeJobs implements View {
  readonly #keys = new Map<string, Set<string>>();

  constructor(snapshot: Snapshot) {
    for (const { key, value } of snapshot.list('job')) this.#add(key, value);
  }

  /** Keys of the jobs with this context of a branch or pull request, ended ones too. */
  ofRef({ hook, repositoryId, ref, context }: Place): readonly string[] {
    return this.#of(['ref', hook, repositoryId, ref, context]);
  }

  /** Keys of the jobs that report to the same commit status. */
  ofStatus({ hook, repositoryId, sha, context }: Commit): readonly string[] {
    return this.#of(['status', hook, repositoryId, sha, context]);
  }

  ofDelivery(hook: string, delivery: string): readonly string[] {
    return this.#of(['delivery', hook, delivery]);
  }

  ofEvent(hook: string, eventKey: string): readonly string[] {
    return this.#of(['event', hook, eventKey]);
  }

  apply({ key, kind, before, after }: RecordChange): void {
    if (kind !== 'job') return;
    // What it is found by is in the spec, which does not change.
    if (before?.kind === 'job' && after === null) this.#remove(key, before);
    if (after?.kind === 'job' && before === null) this.#add(key, after);
  }

  #of(words: readonly string[]): readonly string[] {
    return [...(this.#keys.get(wordOf(words)) ?? [])];
  }

  #add(key: string, job: Job): void {
    for (const word of wordsOf(job)) {
      const known = this.#keys.get(word);
      if (known) known.add(key);
      else this.#keys.set(word, new Set([key]));
    }
  }

  #remove(key: string, job: Job): void {
    for (const word of wordsOf(job)) {
      const known = this.#keys.get(word);
      if (known?.delete(key) && known.size === 0) this.#keys.delete(word);
    }
  }
}

function wordsOf({ spec: { forge } }: Job): readonly string[] {
  if (forge === undefined) return [];
  const { hook, repositoryId, ref, sha, context, delivery, eventKey } = forge;
  return [
    wordOf(['ref', hook, repositoryId, ref, context]),
    wordOf(['status', hook, repositoryId, sha, context]),
    wordOf(['delivery', hook, delivery]),
    wordOf(['event', hook, eventKey]),
  ];
}

function wordOf(words: readonly string[]): string {
  return words.join('\n'); // none of them has control characters
}
