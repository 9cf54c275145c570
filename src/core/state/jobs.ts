// Jobs by what others look them up with: those unfinished by their key for superseding, and each by the instance of its
// current attempt. Indexed so that no change needs a list of all jobs.

import { isFinal, type Job } from '../../api/resources/job.ts';
import { keys } from './keys.ts';
import { defineView, type RecordChange, type Snapshot, type View } from './snapshot.ts';

export const jobsOf = defineView((snapshot) => new Jobs(snapshot));

class Jobs implements View {
  /** Keys of the jobs that have not ended. */
  readonly unfinished = new Set<string>();
  readonly #byKey = new Map<string, Set<string>>();
  /** By the key of its instance. */
  readonly #byInstance = new Map<string, string>();

  constructor(snapshot: Snapshot) {
    for (const { key, value } of snapshot.list('job')) this.#add(key, value);
  }

  /** Keys of the unfinished jobs of a project with this `supersedes`. */
  withKey(project: string, supersedes: string): Iterable<string> {
    return this.#byKey.get(`${project}/${supersedes}`) ?? [];
  }

  /** Key of the job whose current attempt is this instance. */
  ofInstance(instanceKey: string): string | undefined {
    return this.#byInstance.get(instanceKey);
  }

  apply({ key, kind, before, after }: RecordChange): void {
    if (kind !== 'job') return;
    if (before?.kind === 'job') this.#remove(key, before);
    if (after?.kind === 'job') this.#add(key, after);
  }

  #add(key: string, { metadata, spec, status }: Job): void {
    if (status.instance !== undefined) this.#byInstance.set(keys.instance(metadata.project, status.instance), key);
    if (isFinal(status.phase)) return;
    this.unfinished.add(key);
    if (spec.supersedes === undefined) return;
    const word = `${metadata.project}/${spec.supersedes}`;
    const known = this.#byKey.get(word);
    if (known) known.add(key);
    else this.#byKey.set(word, new Set([key]));
  }

  #remove(key: string, { metadata, spec, status }: Job): void {
    this.unfinished.delete(key);
    if (status.instance !== undefined) this.#byInstance.delete(keys.instance(metadata.project, status.instance));
    const word = `${metadata.project}/${spec.supersedes ?? ''}`;
    const known = this.#byKey.get(word);
    if (known?.delete(key) && known.size === 0) this.#byKey.delete(word);
  }
}
