// Virtual time: a heap of what is to happen. It stands still between events, and things due at the same moment happen in an order
// drawn from the seed. It must never look at the machine's time.

import type { Timer } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';

export interface Timeline {
  /** Milliseconds since the run began. */
  readonly nowMs: number;
  /** Events fired so far. */
  readonly fired: number;
  schedule(delayMs: number, fire: () => void): Timer;
  /** Goes to the next event and fires it, unless that lies after `untilMs`; then time is `untilMs`. False when it fired nothing. */
  step(untilMs: number): boolean;
}

interface Planned {
  readonly dueMs: number;
  readonly tiebreak: number;
  readonly sequence: number;
  fire: (() => void) | undefined;
}

export function createTimeline(prng: Prng): Timeline {
  const heap: Planned[] = [];
  let nowMs = 0;
  let fired = 0;
  let sequence = 0;

  const push = (planned: Planned): void => {
    let at = heap.push(planned) - 1;
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (!before(planned, heap[parent])) break;
      heap[at] = heap[parent] ?? planned;
      at = parent;
    }
    heap[at] = planned;
  };

  const pop = (): Planned | undefined => {
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || last === first) return first;
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
    return first;
  };

  return {
    get nowMs() {
      return nowMs;
    },
    get fired() {
      return fired;
    },
    schedule(delayMs, fire) {
      const dueMs = nowMs + Math.max(0, delayMs);
      const planned: Planned = { dueMs, tiebreak: prng.uint32(), sequence: sequence++, fire };
      push(planned);
      return {
        cancel() {
          planned.fire = undefined; // it stays in the heap until its time: most timers are cancelled, few wait long
        },
      };
    },
    step(untilMs) {
      for (;;) {
        const next = heap[0];
        if (next === undefined || next.dueMs > untilMs) {
          nowMs = Math.max(nowMs, untilMs);
          return false;
        }
        pop();
        if (next.fire === undefined) continue;
        nowMs = next.dueMs;
        fired += 1;
        next.fire();
        return true;
      }
    },
  };
}

function before(a: Planned, b: Planned | undefined): boolean {
  if (b === undefined) return true;
  if (a.dueMs !== b.dueMs) return a.dueMs < b.dueMs;
  return a.tiebreak === b.tiebreak ? a.sequence < b.sequence : a.tiebreak < b.tiebreak;
}
