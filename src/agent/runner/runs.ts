// The runs of this host's guests: one keeper for each that was given a program. It never creates, starts or stops a guest, and knows
// nothing of what a run is for.

import type { Assignment } from '../../api/agent-protocol.ts';
import type { RunRepository, RunSpec, RunStatus } from '../../api/resources/run.ts';
import type { Clock } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import type { Driver, Guest } from '../drivers/driver.ts';
import { DriverError } from '../host/driver-error.ts';
import { lacksValues, valuesIn, withValues } from '../guests/secret-values.ts';
import type { RunFiles } from './files/run-files.ts';
import { bootstrapScript } from './guest/bootstrap.ts';
import { programFiles, runDiskEntries } from './guest/run-disk.ts';
import type { SendPiece } from './keeper/keeper-options.ts';
import { RunKeeper } from './keeper/run-keeper.ts';
import { statusOfRun } from './keeper/run-status.ts';
import { putCommands } from './put-files.ts';
import { newRecord } from './keeper/run-record.ts';
import { findRun, makeRun, type RunStore } from './keeper/run-store.ts';

/** What this host has for runs. */
export interface RunParts {
  readonly files: RunFiles;
  readonly randomSecret: (length: number) => Buffer;
  /**
   * Writes the files of a commit to a path, as a tar archive of names that begin with `treePrefix`. Throws `DriverError`. Absent: runs of
   * this host cannot have a repository.
   */
  readonly fetchRepository?: (repo: RunRepository, toTarPath: string, signal: AbortSignal) => Promise<void>;
  readonly logBytesMax?: number;
  readonly artifactsBytesMax?: number;
}

export interface RunsOptions {
  readonly parts: RunParts | undefined;
  readonly send: SendPiece;
  readonly onChange: (instanceId: string) => void;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
}

/** What a guest is created with, for its program. */
export interface PreparedRun {
  readonly runDisk: string;
  readonly userData: string;
  /** The guest has its disk, or is not created. */
  release(): Promise<void>;
}

type Assigned = Pick<Assignment, 'instanceId' | 'incarnation' | 'run' | 'secrets'>;

const defaults = { logBytesMax: 64 * 1024 * 1024, artifactsBytesMax: 1024 * 1024 * 1024 };

export class Runs {
  readonly #options: RunsOptions;
  readonly #keepers = new Map<string, RunKeeper>();
  /** Found on the disk, and not spoken of yet. */
  readonly #found = new Map<string, RunStore>();
  #closed = false;

  constructor(options: RunsOptions) {
    this.#options = options;
  }

  /** Finds what an earlier agent left. Before anything else. */
  async open(): Promise<void> {
    const { parts, log } = this.#options;
    for (const instanceId of (await parts?.files.list()) ?? []) {
      try {
        const store = await findRun(this.#parts.files, instanceId);
        if (store !== undefined) this.#found.set(instanceId, store);
      } catch (error) {
        log.warn('cannot read what is left of a run', { instance: instanceId, error: describeError(error) });
      }
    }
  }

  /** Before its guest is created; repeated when that was interrupted. Undefined: it has none. Throws `DriverError`. */
  async prepare(assigned: Assigned, driver: Driver, signal: AbortSignal): Promise<PreparedRun | undefined> {
    const { instanceId, incarnation, run, secrets } = assigned;
    if (run === undefined) return undefined;
    const env = withValues(run.env, secrets);
    this.#check(run, driver);
    if (this.#keeperOf(assigned) === undefined) {
      await this.forget(instanceId);
      const store = await makeRun(this.#parts.files, { instanceId, incarnation });
      if (this.#closed) {
        await store.close();
        throw new DriverError('Aborted', 'the agent stops');
      }
      this.#keep(store, instanceId, run);
    }
    const { repo } = run;
    const { files, fetchRepository } = this.#parts;
    const addTree = repo === undefined ? undefined : async (path: string) => fetchRepository?.(repo, path, signal);
    const runDisk = await files.makeDisk(instanceId, runDiskEntries({ ...run, env }), addTree);
    return { runDisk, userData: bootstrapScript, release: () => files.removeDisk(instanceId) };
  }

  /** The assignment or the guest has changed, or may have. */
  look(assigned: Assigned, guest: Guest | undefined, driver: Driver): void {
    // Output that comes before the values are known could not be masked: it waits in the guest.
    if (lacksValues(assigned)) return;
    this.#keeperOf(assigned)?.mask(valuesIn(assigned.secrets));
    const { run, secrets } = assigned;
    if (run?.warm !== undefined)
      this.#keeperOf(assigned)?.give(run, () =>
        putCommands(programFiles({ ...run, env: withValues(run.env, secrets) })),
      );
    const same = guest?.incarnation === assigned.incarnation;
    this.#keeperOf(assigned)?.look(same ? guest : undefined, driver);
  }

  /** Before its guest is stopped. Resolves when its program has ended, or does not. */
  async end(assigned: Assigned): Promise<void> {
    await this.#keeperOf(assigned)?.end();
  }

  /** Its guest is removed, or there is none, and its output is wanted no more. */
  async forget(instanceId: string): Promise<void> {
    const keeper = this.#keepers.get(instanceId);
    const found = this.#found.get(instanceId);
    this.#keepers.delete(instanceId);
    this.#found.delete(instanceId);
    await keeper?.close();
    await found?.close();
    if (!this.#closed) await this.#options.parts?.files.remove(instanceId);
  }

  /** Its program is waited for no longer. */
  abandon(instanceId: string): void {
    this.#keepers.get(instanceId)?.abandon();
  }

  has(instanceId: string): boolean {
    return this.#keepers.has(instanceId) || this.#found.has(instanceId);
  }

  /** Instances of which something is here. */
  instanceIds(): readonly string[] {
    return [...this.#keepers.keys(), ...this.#found.keys()];
  }

  /** Undefined: it has no program. */
  statusOf(assigned: Assigned): RunStatus | undefined {
    const { run, incarnation } = assigned;
    if (run === undefined) return undefined;
    return this.#keeperOf(assigned)?.status ?? statusOfRun(newRecord(incarnation), run);
  }

  /** Guests and their programs go on. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#keepers.values(), ...this.#found.values()].map((each) => each.close()));
  }

  get #parts(): RunParts {
    const { parts } = this.#options;
    if (parts === undefined) throw new DriverError('NotPossible', 'this host runs no programs in its guests');
    return parts;
  }

  #check({ repo }: RunSpec, driver: Driver): void {
    if (driver.access?.openRunner === undefined)
      throw new DriverError('NotPossible', `guests of driver "${driver.name}" cannot be given a program to run`);
    if (repo !== undefined && this.#parts.fetchRepository === undefined)
      throw new DriverError('NotPossible', 'this host does not fetch repositories');
  }

  /** Of this incarnation only. */
  #keeperOf({ instanceId, incarnation, run }: Assigned): RunKeeper | undefined {
    const found = this.#found.get(instanceId);
    if (run !== undefined && found?.record.incarnation === incarnation && !this.#closed) {
      this.#found.delete(instanceId);
      this.#keep(found, instanceId, run);
    }
    const keeper = this.#keepers.get(instanceId);
    return keeper?.incarnation === incarnation ? keeper : undefined;
  }

  #keep(store: RunStore, instanceId: string, spec: RunSpec): void {
    const { send, onChange, clock, prng, log } = this.#options;
    const { randomSecret, logBytesMax, artifactsBytesMax } = { ...defaults, ...this.#parts };
    this.#keepers.set(
      instanceId,
      new RunKeeper({
        ...{ instanceId, spec, store, send, onChange, clock, prng, log, randomSecret },
        limits: { logBytesMax, artifactsBytesMax },
      }),
    );
  }
}
