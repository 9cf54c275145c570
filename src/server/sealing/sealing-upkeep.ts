// The leader's upkeep of encrypted records: records in plain text are written again, and data keys are encrypted again
// under a new master key. Each step is one conditional commit, so a crash between two leaves all of them readable.
//
//   key file changed ─▶ every server holds old and new ─▶ the leader rewrites each data key ─▶ no data key needs the old

import type { Clock, Timer } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { kindOfKey } from '../../core/state/keys.ts';
import type { Change, Plan } from '../../core/state/plan.ts';
import type { Entry } from '../../core/state/snapshot.ts';
import type { Decider } from '../decide.ts';
import type { Sealing } from './open-sealing.ts';
import type { MasterKeySource } from './read-master-keys.ts';

interface UpkeepParts extends Sealing {
  readonly source: MasterKeySource | undefined;
  readonly decider: Decider;
  readonly leads: () => boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

const everyMs = 1_000;
/** A second: a hundred thousand records take half an hour, beside which requests hardly notice them. */
const recordsPerTick = 50;
/** The key file is read again. */
const reloadTicks = 5;

export class SealingUpkeep {
  readonly #parts: UpkeepParts;
  #timer: Timer | undefined;
  #working: Promise<void> = Promise.resolve();
  #stopped = false;
  #ticks = 0;
  #trouble = '';

  constructor(parts: UpkeepParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#timer = this.#parts.clock.setTimer(everyMs, () => void (this.#working = this.#tick()), { background: true });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#working;
  }

  async #tick(): Promise<void> {
    if (this.#ticks++ % reloadTicks === 0) await this.#reload();
    if (this.#parts.leads()) await this.step();
    if (!this.#stopped) this.start();
  }

  /** One round of the leader's work. */
  async step(): Promise<void> {
    const changes = [...this.#rewrappedKeys(), ...this.#plainRecords()];
    await Promise.all(changes.map((change) => this.#commit({ changes: [change] })));
  }

  /** Keys that cannot be read now, as while the file is replaced, are tried again; the old ones serve meanwhile. */
  async #reload(): Promise<void> {
    const { dataKeys, source, log } = this.#parts;
    if (source === undefined) return;
    try {
      const masterKeys = await source.read();
      const before = dataKeys.masterKeys.current.id;
      dataKeys.useMasterKeys(masterKeys);
      this.#trouble = '';
      if (masterKeys.current.id !== before)
        log.info('new data keys are encrypted under another master key', { masterKey: masterKeys.current.id, before });
    } catch (error) {
      const trouble = describeError(error);
      if (trouble !== this.#trouble) log.error('the master keys cannot be read again', { error: trouble });
      this.#trouble = trouble;
    }
  }

  *#rewrappedKeys(): Generator<Change> {
    const { dataKeys, decider } = this.#parts;
    for (const { key, value, revision } of decider.cache.list('dataKey')) {
      const rewrapped = dataKeys.rewrapped(value);
      if (rewrapped) yield { key, ifRevision: revision, value: rewrapped };
    }
  }

  *#plainRecords(): Generator<Change> {
    let count = 0;
    for (const key of this.#parts.store.plain) {
      if (count === recordsPerTick) return;
      const entry = this.#committed(key);
      if (!entry) continue;
      count += 1;
      yield { key, ifRevision: entry.revision, value: entry.value };
    }
  }

  #committed(key: string): Entry | undefined {
    const kind = kindOfKey(key);
    return kind && this.#parts.decider.cache.committed(kind, key);
  }

  /** A record that changed meanwhile was written by that change; the next round looks again. */
  async #commit(plan: Plan): Promise<void> {
    const { decider, log } = this.#parts;
    if (this.#stopped) return;
    await decider.committer.submit(plan).catch((error: unknown) => {
      log.debug('a record could not be encrypted now', { key: plan.changes[0]?.key, error: describeError(error) });
    });
  }
}
