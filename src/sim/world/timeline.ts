// Virtual time: a heap of events to come. Time stands still between events, and events due at the same moment fire in an order drawn from
// the seed. The timeline never reads the machine's clock.

import type { Timer } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';

interface Planned {
  readonly dueMs: number;
  readonly tiebreak: number;
  readonly sequence: number;
  fire: (() => void) | undefined;
}

export class Timeline {
  readonly #prng: Prng;
  readonly #heap: Planned[] = [];
  #nowMs = 0;
  #fired = 0;
  #sequence = 0;

  constructor(prng: Prng) {
    this.#prng = prng;
  }

  /** Milliseconds since the run began. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Events fired so far. */
  get fired(): number {
    return this.#fired;
  }

  schedule(delayMs: number, fire: () => void): Timer {
    const dueMs = this.#nowMs + Math.max(0, delayMs);
    const planned: Planned = { dueMs, tiebreak: this.#prng.uint32(), sequence: this.#sequence++, fire };
    this.#push(planned);
    return {
      cancel() {
        planned.fire = undefined; // it stays in the heap until its time: most timers are cancelled, few wait long
      },
    };
  }

  /** Goes to the next event and fires it, unless it lies after `untilMs`; then time is `untilMs`. False when it fired nothing. */
  step(untilMs: number): boolean {
    for (;;) {
      const next = this.#heap[0];
      if (next === undefined || next.dueMs > untilMs) {
        this.#nowMs = Math.max(this.#nowMs, untilMs);
        return false;
      }
      this.#pop();
      if (next.fire === undefined) continue;
      this.#nowMs = next.dueMs;
      this.#fired += 1;
      next.fire();
      return true;
    }
  }

  #push(planned: Planned): void {
    const heap = this.#heap;
    let at = heap.push(planned) - 1;
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (!before(planned, heap[parent])) break;
      heap[at] = heap[parent] ?? planned;
      at = parent;
    }
    heap[at] = planned;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      const left = heap[child];
      if (left === undefined) break;
      const right = heap[child + 1];
      if (right !== undefined && before(right, left)) child += 1;
      const smaller = heap[child] ?? left;
      if (!before(smaller, last)) break;
      heap[at] = smaller;
      at = child;
    }
    heap[at] = last;
  }
}

function before(a: Planned, b: Planned | undefined): boolean {
  if (b === undefined) return true;
  if (a.dueMs !== b.dueMs) return a.dueMs < b.dueMs;
  return a.tiebreak === b.tiebreak ? a.sequence < b.sequence : a.tiebreak < b.tiebreak;
}
