// Hot shapes: those in use, mended together. A changed host is looked at once for all of them, while what is known of it is at hand,
// which costs a fraction of each shape's fetching it again when it is next asked for. Shapes that nobody asks for fall out, and catch up
// by the change log when somebody does.

import type { Desk } from './desks.ts';
import type { Fleet } from '../fleet.ts';
import { changesNothing } from './leaders.ts';
import { combined, type Shape, type Verdicts } from './shape.ts';
import type { Slot } from './slot.ts';
import { refused } from './verdicts.ts';

/** A shape not asked for in so many questions is let go. */
const restAfter = 4096;
/** Beyond so many changed hosts at once, shapes build anew each when it is asked for. */
const changesMax = 1024;

/** The shapes that ask for the same room and whose lists lie on one block of desks: of each its desk, and which of the terms are its own. */
interface Row {
  readonly desk: Desk;
  readonly shapes: readonly Shape[];
  readonly places: Int32Array;
  readonly terms: Int32Array;
}

interface SameRoom {
  readonly room: Verdicts;
  readonly rows: readonly Row[];
}

export class HotShapes {
  readonly #fleet: Fleet;
  #shapes: Shape[] = [];
  #byRoom: SameRoom[] = [];
  #terms: Verdicts[] = [];
  /** What the terms say of the host at hand. */
  #onRecord = new Float64Array(0);
  /** Of the fleet's log: all is up to date with this. */
  #upTo = 0;
  #trials = 0;
  #sweepAt = 0;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  /** Brings all up to date. Within a trial each must catch up for itself, and only who is asked for does. */
  mend(): void {
    if (this.#shapes.length === 0) return;
    const { log, trials, trying } = this.#fleet;
    const from = this.#upTo;
    if (trying || from === log.end) return;
    // What rooms said before a trial, shapes have been told; what they said within one, only who was asked for then.
    const told = trials === this.#trials;
    this.#trials = trials;
    const count = log.collect(from);
    if (count < 0 || count > changesMax) return this.clear();
    this.#upTo = log.end;
    for (const terms of this.#terms) terms.catchUp();
    for (let i = 0; i < count; i++) this.#mendAt(log.changed[i] ?? 0, told);
  }

  /** Mostly it is nothing to any shape: too full before as after, or too far from the best. */
  #mendAt(slot: Slot, told: boolean): void {
    const onRecord = this.#onRecord;
    for (let i = 0; i < onRecord.length; i++) onRecord[i] = this.#terms[i]?.of(slot) ?? refused;
    for (const { room, rows } of this.#byRoom) {
      const before = room.of(slot);
      const now = room.mend(slot);
      if (now < 0 && before < 0 && told) continue;
      for (const { desk, shapes, places, terms } of rows) {
        const { states, cuts, width } = desk;
        for (let i = 0; i < places.length; i++) {
          const verdict = combined(onRecord[terms[i] ?? 0] ?? refused, now);
          const at = places[i] ?? 0;
          if (!changesNothing(verdict, states[slot * width + at] ?? 0, cuts[at] ?? 0))
            shapes[i]?.leaders.update(slot, verdict);
        }
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
    this.#upTo = this.#fleet.log.end;
    this.#trials = this.#fleet.trials;
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
    this.#byRoom = [...Map.groupBy(this.#shapes, ({ onRoom }) => onRoom)].map(([room, all]) => ({
      room,
      rows: [...Map.groupBy(all, ({ desk }) => desk.states).values()].flatMap((shapes) => this.#rowOf(shapes)),
    }));
  }

  #rowOf(shapes: readonly Shape[]): Row[] {
    const desk = shapes[0]?.desk;
    if (!desk) return [];
    const terms = Int32Array.from(shapes, ({ onRecord }) => this.#terms.indexOf(onRecord));
    return [{ desk, shapes, places: Int32Array.from(shapes, (shape) => shape.desk.at), terms }];
  }
}
