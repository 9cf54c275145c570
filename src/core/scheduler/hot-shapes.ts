// Hot shapes: those in use, mended together. A changed host is looked at once for all of them, while what is known of it is at hand,
// which costs a fraction of each shape's fetching it again when it is next asked for. Shapes that nobody asks for fall out, and catch up
// by the change log when somebody does.

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
}

export class HotShapes {
  readonly #fleet: Fleet;
  #shapes: Shape[] = [];
  #byRoom: SameRoom[] = [];
  #terms: Verdicts[] = [];
  /** What the terms say of the host at hand. */
  #onRecord = new Float64Array(0);
  #upTo = 0;
  #sweepAt = 0;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  /** Brings all up to date. Within a trial it does nothing: only who is asked for follows there. */
  mend(): void {
    const { log, recordLog, trying } = this.#fleet;
    const from = this.#upTo;
    if (from === log.end || trying) return;
    const count = log.collect(from);
    this.#upTo = log.end;
    if (count < 0 || count > changesMax) return this.clear();
    // Who was refused and still is needs no further look, unless something was mended for one shape alone since all were.
    let known = true;
    for (const terms of this.#terms) known &&= terms.upTo === recordLog.end;
    for (const { room } of this.#byRoom) known &&= room.upTo === from;
    for (const terms of this.#terms) terms.catchUp();
    for (let i = 0; i < count; i++) this.#mendAt(log.changed[i] ?? 0, known);
    for (const { room } of this.#byRoom) room.mended();
    for (const shape of this.#shapes) shape.mended();
  }

  #mendAt(slot: Slot, known: boolean): void {
    const onRecord = this.#onRecord;
    for (let i = 0; i < onRecord.length; i++) onRecord[i] = this.#terms[i]?.of(slot) ?? refused;
    for (const { room, shapes, terms } of this.#byRoom) {
      const before = room.of(slot);
      const now = room.mend(slot);
      if (now < 0 && before < 0 && known) continue;
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

  #keep(stays: (shape: Shape) => boolean): void {
    for (const shape of this.#shapes) shape.hot = stays(shape);
    this.#shapes = this.#shapes.filter(({ hot }) => hot);
    this.#gather();
  }

  #gather(): void {
    this.#terms = [...new Set(this.#shapes.map(({ onRecord }) => onRecord))];
    this.#onRecord = new Float64Array(this.#terms.length);
    this.#byRoom = [...Map.groupBy(this.#shapes, ({ onRoom }) => onRoom)].map(([room, shapes]) => ({
      room,
      shapes,
      terms: Int32Array.from(shapes, ({ onRecord }) => this.#terms.indexOf(onRecord)),
    }));
  }
}
