// One look at a warm pool: how many guests to create, and which to remove. Pure. Stale guests stay until others are ready in their place,
// so that claims find guests meanwhile.

import type { WarmGuest } from './guests.ts';

export interface WarmPassInput {
  readonly guests: readonly WarmGuest[];
  readonly wanted: number;
  /** Whether one more may exist while a stale one is replaced. */
  readonly maySurge: boolean;
}

export interface WarmPass {
  readonly create: number;
  readonly remove: readonly WarmGuest[];
  readonly held: number;
  readonly ready: number;
}

/** As many changes in one Plan. */
const changesMax = 100;

export function warmPassOf({ guests, wanted, maySurge }: WarmPassInput): WarmPass {
  const over = guests.filter((guest) => guest.over && !guest.leaving);
  const current = guests.filter((guest) => !guest.over && !guest.leaving);
  const fresh = current.filter(({ stale }) => !stale);
  const stale = current.filter((guest) => guest.stale);
  const freshReady = fresh.filter(({ ready }) => ready).length;
  const surge = maySurge && stale.length > 0 ? 1 : 0;
  const staleReady = stale.filter(({ ready }) => ready).toSorted((a, b) => createdAtMs(a) - createdAtMs(b));
  const needed = Math.min(staleReady.length, Math.max(0, wanted - freshReady));
  const noRoom = !maySurge && freshReady === fresh.length && current.length >= wanted;
  const left = noRoom && needed === staleReady.length ? Math.max(0, needed - 1) : needed;
  const surplus = fresh
    .toSorted((a, b) => Number(a.ready) - Number(b.ready) || createdAtMs(b) - createdAtMs(a))
    .slice(0, Math.max(0, fresh.length - wanted));
  return {
    create: Math.min(changesMax, Math.max(0, Math.min(wanted - fresh.length, wanted + surge - current.length))),
    remove: [
      ...over,
      ...stale.filter(({ ready }) => !ready),
      ...staleReady.slice(0, staleReady.length - left),
      ...surplus,
    ].slice(0, changesMax),
    held: current.length,
    ready: current.filter(({ ready }) => ready).length,
  };
}

function createdAtMs({ entry }: WarmGuest): number {
  return entry.value.metadata.createdAtMs;
}
