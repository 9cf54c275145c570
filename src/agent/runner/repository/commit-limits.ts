// How much one commit may be, and what its paths may look like. Pure.

import { DriverError } from '../../host/driver-error.ts';

export interface CommitLimits {
  readonly bytesMax: number;
  /** Files and directories. */
  readonly entriesMax: number;
}

/** Counts what a commit has; throws `RepositoryRefused` when that is too much. */
export class CommitCount {
  readonly #limits: CommitLimits;
  readonly #what: string;
  #bytes = 0;
  #entries = 0;

  constructor(limits: CommitLimits, what: string) {
    this.#limits = limits;
    this.#what = what;
  }

  /** A path relative to the commit's tree, as latin1. */
  add(path: string, bytes: number): void {
    const { bytesMax, entriesMax } = this.#limits;
    this.#entries += 1;
    this.#bytes += bytes;
    if (path.split('/').some((part) => part === '' || part === '.' || part === '..' || part.includes('\0')))
      throw this.refused('it contains a path with ".", ".." or an empty part');
    if (path.length > pathLengthMax) throw this.refused('it contains a path that is too long');
    if (this.#entries > entriesMax) throw this.refused(`it has more than ${entriesMax} files and directories`);
    if (this.#bytes > bytesMax)
      throw this.refused(`its files take more than ${bytesMax} bytes (repositoryMiBMax of the agent)`);
  }

  refused(why: string): DriverError {
    return new DriverError('RepositoryRefused', `cannot fetch ${this.#what}: ${why}`);
  }
}

/** The kernel's limit. */
export const pathLengthMax = 4096;
