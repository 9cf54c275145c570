// Hot shapes: shapes in use, updated together. A changed host is examined once for all of them while its data is in the
// CPU cache, which costs a fraction of fetching it again for each shape. A shape that is no longer requested leaves the
// set, and catches up from the change log at its next request.

import type { Desk } from './desks.ts';
import type { Fleet } from '../fleet.ts';
import { changesNothing } from './leaders.ts';
import { combined, type Shape, type Verdicts } from './shape.ts';
import type { Slot } from './slot.ts';
import { refused } from './verdicts.ts';

/** A shape that was not requested in this many requests leaves the set. */
const restAfter = 4096;
/** When more hosts than this changed at once, each shape rebuilds at its next request. */
const changesMax = 1024;

/**
 * Shapes that ask for the same room and whose lists share one block of desks: the desk of each shape, and the index of
 * its terms.
 */
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
  /** The verdicts of each set of terms on the current host. */
  #onRecord = new Float64Array(0);
  /** Position in the fleet's log up to which all shapes are current. */
  #upTo = 0;
  #trials = 0;
  #sweepAt = 0;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  /** Brings all shapes up to date. During a trial each shape catches up by itself, and only when it is requested. */
  mend(): void {
    if (this.#shapes.length === 0) return;
    const { log, trials, trying } = this.#fleet;
    const from = this.#upTo;
    if (trying || from === log.end) return;
    // All shapes have the room verdicts from before a trial; those from within a trial reach only the shapes that were
    // requested in it.
    const told = trials === this.#trials;
    this.#trials = trials;
    const count = log.collect(from);
    if (count < 0 || count > changesMax) return this.clear();
    this.#upTo = log.end;
    for (const terms of this.#terms) terms.catchUp();
    for (let i = 0; i < count; i++) this.#mendAt(log.changed[i] ?? 0, told);
  }

  /** Most changes do not affect a shape: the host is full before and after, or far from the best. */
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

  /** An up-to-date shape was requested; `question` is the number of the request. */
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

  /**
   * Called before one of the shapes, or one that shares verdicts with them, catches up by itself: passes on how far
   * they are current.
   */
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
