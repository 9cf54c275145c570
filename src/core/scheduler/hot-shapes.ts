// Hot shapes: those in use, mended together. A changed host is looked at once for all of them, while what is known of it is at hand,
// which costs a fraction of each shape's fetching it again when it is next asked for. Shapes that nobody asks for fall out, and catch up
// by the change log when somebody does.

import type { Cuts } from './desks.ts';
import type { Fleet } from './fleet.ts';

import { combined, type Shape, type Verdicts } from './shape.ts';
import type { Slot } from './slot.ts';
import { refused } from './verdicts.ts';

/** A shape not asked for in so many questions is let go. */
const restAfter = 4096;
/** Beyond so many changed hosts at once, shapes build anew each when it is asked for. */
const changesMax = 1024;

/** The shapes that ask for the same room, and of each which of the terms are its own. */
interface SameRoom {
  readonly room: Verdicts;
  readonly shapes: readonly Shape[];
  readonly terms: Int32Array;
  /** None of them lists a host that scores less. */
  cutMin: number;
}

export class HotShapes {
  readonly #fleet: Fleet;
  #shapes: Shape[] = [];
  #byRoom: SameRoom[] = [];
  #terms: Verdicts[] = [];
  /** What the terms say of the host at hand. */
  #onRecord = new Float64Array(0);
  readonly #cuts: Cuts;
  #cutChanges = -1;
  /** Of the fleet's logs: all is up to date with these. */
  #upTo = 0;
  #recordUpTo = 0;
  #trials = 0;
  #sweepAt = 0;

  constructor(fleet: Fleet, cuts: Cuts) {
    this.#fleet = fleet;
    this.#cuts = cuts;
  }

  /** Brings all up to date. Within a trial each must catch up for itself, and only who is asked for does. */
  mend(): void {
    if (this.#shapes.length === 0) return;
    const { log, recordLog, trials, trying } = this.#fleet;
    const from = this.#upTo;
    if (trying || from === log.end) return;
    // After a trial or a changed record, of who was refused before it is not known whether all shapes know of it.
    const known = trials === this.#trials && recordLog.end === this.#recordUpTo;
    this.#trials = trials;
    const count = log.collect(from);
    if (count < 0 || count > changesMax) return this.clear();
    this.#upTo = log.end;
    this.#recordUpTo = recordLog.end;
    for (const terms of this.#terms) terms.catchUp();
    if (this.#cutChanges !== this.#cuts.changes) this.#findCuts();
    for (let i = 0; i < count; i++) this.#mendAt(log.changed[i] ?? 0, known);
  }

  #findCuts(): void {
    this.#cutChanges = this.#cuts.changes;
    for (const each of this.#byRoom) each.cutMin = Math.min(...each.shapes.map(({ leaders }) => leaders.cutScore));
  }

  /** Mostly it is nothing to any shape: too full before as after, or too far from the best. */
  #mendAt(slot: Slot, known: boolean): void {
    const onRecord = this.#onRecord;
    let mostOnRecord = 0;
    for (let i = 0; i < onRecord.length; i++) {
      const verdict = this.#terms[i]?.of(slot) ?? refused;
      onRecord[i] = verdict;
      if (verdict > mostOnRecord) mostOnRecord = verdict;
    }
    for (const { room, shapes, terms, cutMin } of this.#byRoom) {
      const before = room.of(slot);
      const now = room.mend(slot);
      if (known) {
        if (now < 0 && before < 0) continue;
        if (now >= 0 && before >= 0 && now + mostOnRecord < cutMin && before + mostOnRecord < cutMin) continue;
      }
      for (let i = 0; i < terms.length; i++) {
        const record = onRecord[terms[i] ?? 0] ?? refused;
        if (record < 0 && known) continue;
        shapes[i]?.leaders.update(slot, combined(record, now));
      }
    }
  }

  /** An up-to-date shape was asked for, as the question of this number. */
  use(shape: Shape, question: number): void {
    shape.usedAt = question;
    if (!shape.hot) {
      if (this.#fleet.trying) return;
      if (this.#shapes.length === 0) this.#begin();
      shape.hot = true;
      this.#shapes.push(shape);
      this.#gather();
    }
    if (question < this.#sweepAt) return;
    this.#sweepAt = question + restAfter;
    if (this.#shapes.some(({ usedAt }) => usedAt <= question - restAfter))
      this.#keep(({ usedAt }) => usedAt > question - restAfter);
  }

  drop(shape: Shape): void {
    if (shape.hot) this.#keep((each) => each !== shape);
  }

  clear(): void {
    this.#keep(() => false);
  }

  #begin(): void {
    const { log, recordLog, trials } = this.#fleet;
    this.#upTo = log.end;
    this.#recordUpTo = recordLog.end;
    this.#trials = trials;
  }

  /** Before any of them, or one that shares with them, catches up for itself: how far they have come. */
  tellUpTo(): void {
    for (const { room } of this.#byRoom) room.mendedUpTo(this.#upTo);
    for (const shape of this.#shapes) shape.mendedUpTo(this.#upTo);
  }

  #keep(stays: (shape: Shape) => boolean): void {
    this.tellUpTo();
    for (const shape of this.#shapes) shape.hot = stays(shape);
    this.#shapes = this.#shapes.filter(({ hot }) => hot);
    this.#gather();
  }

  #gather(): void {
    this.#terms = [...new Set(this.#shapes.map(({ onRecord }) => onRecord))];
    this.#onRecord = new Float64Array(this.#terms.length);
    this.#cutChanges = -1;
    this.#byRoom = [...Map.groupBy(this.#shapes, ({ onRoom }) => onRoom)].map(([room, shapes]) => ({
      room,
      shapes,
      terms: Int32Array.from(shapes, ({ onRecord }) => this.#terms.indexOf(onRecord)),
      cutMin: refused,
    }));
  }
}
