// One look at a workload: which copies to create and which to remove. Pure; repeated after each change it ends with as many available
// copies of the present revision as are wanted. On the way at least `wanted - maxUnavailable` are available if nothing fails, and there are
// at most `wanted + maxSurge`.

import type { WorkloadStrategy } from '../../api/resources/workload.ts';
import type { Copy } from './copy.ts';
import { victims } from './victims.ts';

export interface PassInput {
  readonly copies: readonly Copy[];
  readonly wanted: number;
  readonly revision: number;
  readonly strategy: WorkloadStrategy;
  /** Nothing is updated. */
  readonly paused: boolean;
  /** When the next copy of an ordinal may be created; undefined: at once. */
  readonly notBeforeMs: (ordinal: number) => number | undefined;
  readonly nowMs: number;
}

export interface Pass {
  /** Ordinals of the copies to create. */
  readonly create: readonly number[];
  readonly remove: readonly Copy[];
  readonly counts: {
    readonly copies: number;
    readonly updated: number;
    readonly ready: number;
    readonly available: number;
  };
  /** Of an older revision. */
  readonly old: number;
  /** Look again after so long: a copy becomes available, or may be created. */
  readonly againMs: number | undefined;
}

/** As many changes in one Plan. */
const changesMax = 500;

export function passOf(input: PassInput): Pass {
  const { copies, revision, strategy, nowMs } = input;
  const over = copies.filter((copy) => copy.over && !copy.leaving);
  const current = copies.filter((copy) => !copy.over && !copy.leaving);
  const leaving = copies.filter((copy) => (copy.leaving || copy.over) && copy.hostUp);
  const isAvailable = (copy: Copy): boolean => copy.ready && nowMs >= copy.readyAtMs + strategy.minHealthyMs;
  const updated = current.filter((copy) => copy.revision === revision);
  const old = current.filter((copy) => copy.revision !== revision);
  const available = current.filter(isAvailable).length;
  const parts = { ...input, current, updated, old, leaving, available, isAvailable };
  const step = input.paused ? scaled(parts) : strategy.type === 'Recreate' ? recreated(parts) : rolled(parts);
  const due = ordinalsFor(step.create, current, input);
  return {
    create: due.ordinals.slice(0, changesMax),
    remove: [...over, ...step.remove].slice(0, changesMax),
    counts: {
      copies: current.length,
      updated: updated.length,
      ready: current.filter((copy) => copy.ready).length,
      available,
    },
    old: old.length,
    againMs: soonest([due.againMs, ...current.map((copy) => untilAvailable(copy, input))]),
  };
}

function untilAvailable({ ready, readyAtMs }: Copy, { strategy, nowMs }: PassInput): number | undefined {
  const leftMs = readyAtMs + strategy.minHealthyMs - nowMs;
  return ready && leftMs > 0 ? leftMs : undefined;
}

interface Parts extends PassInput {
  /** Neither over nor leaving. */
  readonly current: readonly Copy[];
  readonly updated: readonly Copy[];
  readonly old: readonly Copy[];
  /** They are to go, and hold room. */
  readonly leaving: readonly Copy[];
  readonly available: number;
  readonly isAvailable: (copy: Copy) => boolean;
}

interface Step {
  readonly create: number;
  readonly remove: readonly Copy[];
}

/** Copies that leave count while they hold room, as in an update. */
function scaled({ current, leaving, wanted, strategy, revision, nowMs }: Parts): Step {
  const { surge } = boundsOf(strategy, wanted);
  const all = current.length + leaving.length;
  return {
    create: Math.max(0, Math.min(wanted - current.length, wanted + surge - all)),
    remove: victims(current, { count: current.length - wanted, revision, nowMs }),
  };
}

function recreated(parts: Parts): Step {
  const { old, leaving, revision } = parts;
  const oldHoldRoom = old.length > 0 || leaving.some((copy) => copy.revision !== revision);
  return oldHoldRoom ? { create: 0, remove: old } : scaled(parts);
}

function rolled(parts: Parts): Step {
  const { current, updated, old, leaving, available, isAvailable, wanted, strategy, revision, nowMs } = parts;
  const first = (copies: readonly Copy[], count: number) => victims(copies, { count, revision, nowMs });
  if (old.length === 0) return scaled(parts);
  const { surge, unavailable } = boundsOf(strategy, wanted);
  const all = current.length + leaving.length;
  const least = wanted - unavailable;
  const create = Math.max(0, Math.min(wanted + surge - all, wanted - updated.length));
  // The new ones may need the room of those that are not available. Copies that leave do not count here: in the next pass they would let one
  // more go, and one that is only out of sight would be missing when it is back.
  const badOld = old.filter((copy) => !isAvailable(copy));
  const badNew = updated.filter((copy) => !isAvailable(copy)).length;
  const bad = first(badOld, Math.min(badOld.length, Math.max(0, current.length - least - badNew)));
  const goodOld = old.filter(isAvailable).toSorted((a, b) => a.revision - b.revision);
  const good = first(goodOld, Math.max(0, Math.min(goodOld.length, available - least)));
  // The wanted number fell meanwhile.
  const tooMany = Math.max(0, current.length - bad.length - good.length - wanted - surge);
  const others = current.filter((copy) => !bad.includes(copy) && !good.includes(copy));
  const surplus = first(
    others.filter((copy) => !isAvailable(copy)),
    tooMany,
  );
  const more = first(others.filter(isAvailable), tooMany - surplus.length);
  return { create, remove: [...bad, ...good, ...surplus, ...more] };
}

/** Percentages of the wanted number. Both 0 after rounding: one may be missing. */
export function boundsOf(
  { maxSurge, maxUnavailable }: Pick<WorkloadStrategy, 'maxSurge' | 'maxUnavailable'>,
  wanted: number,
): { readonly surge: number; readonly unavailable: number } {
  const surge = shareOf(maxSurge, wanted, Math.ceil);
  const unavailable = Math.min(wanted, shareOf(maxUnavailable, wanted, Math.floor));
  return surge === 0 && unavailable === 0 ? { surge, unavailable: 1 } : { surge, unavailable };
}

function shareOf(share: number | string, of: number, round: (value: number) => number): number {
  return typeof share === 'number' ? share : round((Number(share.slice(0, -1)) * of) / 100);
}

/** The lowest free ordinals; those that failed lately wait. */
function ordinalsFor(count: number, current: readonly Copy[], { notBeforeMs, nowMs }: PassInput) {
  const taken = new Set(current.map(({ ordinal }) => ordinal));
  const ordinals: number[] = [];
  let againMs: number | undefined;
  for (let ordinal = 0, found = 0; found < count; ordinal++) {
    if (taken.has(ordinal)) continue;
    found += 1;
    const waitMs = (notBeforeMs(ordinal) ?? 0) - nowMs;
    if (waitMs <= 0) ordinals.push(ordinal);
    else againMs = Math.min(againMs ?? waitMs, waitMs);
  }
  return { ordinals, againMs };
}

function soonest(times: readonly (number | undefined)[]): number | undefined {
  let least: number | undefined;
  for (const time of times) if (time !== undefined && (least === undefined || time < least)) least = time;
  return least;
}
