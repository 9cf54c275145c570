// Changes whose commit failed in a way that leaves open whether they were made. Their notes tell, as soon as the store answers again.

import { type Clock, type Timer } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { PlanAuthor } from '../../core/state/plan.ts';
import type { Store } from '../../store/store.ts';
import type { AuditLog } from './audit-log.ts';
import { type AuditNotes, decodeNote } from './audit-notes.ts';

/** A commit that was on its way when the connection broke has ended by then, one way or the other. */
const settleAfterMs = 10_000;

interface Parts {
  readonly store: Pick<Store, 'get'>;
  readonly clock: Clock;
  readonly log: AuditLog;
  readonly notes: AuditNotes;
  readonly logger: Logger;
}

export class DoubtfulChanges {
  readonly #parts: Parts;
  #open: { readonly author: PlanAuthor; readonly seq: number | undefined; readonly dueMs: number }[] = [];
  #timer: Timer | undefined;
  #stopped = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** `seq`: of the line that says `unknown`. */
  add(author: PlanAuthor, seq: number | undefined): void {
    this.#open.push({ author, seq, dueMs: this.#parts.clock.monotonicMs() + settleAfterMs });
    this.#later();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  #later(): void {
    if (this.#stopped || this.#open.length === 0) return;
    this.#timer ??= this.#parts.clock.setTimer(settleAfterMs, () => void this.#settle(), { background: true });
  }

  async #settle(): Promise<void> {
    const nowMs = this.#parts.clock.monotonicMs();
    const due = this.#open.filter(({ dueMs }) => dueMs <= nowMs);
    this.#open = this.#open.filter(({ dueMs }) => dueMs > nowMs);
    for (const [i, { author, seq }] of due.entries()) {
      try {
        await this.#settleOne(author, seq);
      } catch (error) {
        this.#open.push(...due.slice(i)); // the store or the file is still away
        this.#parts.logger.debug('a change is still in doubt', { error: describeError(error) });
        break;
      }
    }
    this.#timer = undefined;
    this.#later();
  }

  async #settleOne(author: PlanAuthor, settles: number | undefined): Promise<void> {
    const { store, log, notes } = this.#parts;
    const { number } = author.noted;
    if (number === undefined) return;
    log.assertWritable();
    const found = await store.get(notes.keyOf(author));
    const note = found ? decodeNote(found.value) : undefined;
    const made = note !== undefined && note.first <= number && number < note.first + note.entries.length;
    await log.append(author.entry(), {
      outcome: made ? 'done' : 'failed',
      ...(made ? { revision: found?.revision } : {}),
      note: number,
      settles,
    });
  }
}
