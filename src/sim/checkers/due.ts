// Invariant 3, its pace: what a control plane could do for an instance at once is done within seconds, and not when a full pass happens
// to come by. The controllers are asked themselves, on the committed state: who has work for long was not woken.

import { garbage } from '../../core/controllers/garbage.ts';
import { lostHost } from '../../core/controllers/hosts/lost-host.ts';
import { restart, restartDelayOf } from '../../core/controllers/restart.ts';
import { Cache } from '../../core/state/cache.ts';
import type { Context } from '../../core/state/context.ts';
import { seededPrng } from '../../base/prng.ts';
import type { Checker, Facts } from './checker.ts';

/** Longer than any retry (5 s) and its wait for a conflict to be heard of, shorter than the full pass (60 s). */
const idleMsMax = 25_000;
/** Where the clock of who said that it failed is ahead of the leader's, a restart waits for as much as twice its delay. */
const restartDelays = 2;

export function dueChecker({ state, nowMs, policy }: Facts): Checker {
  /** By controller, key and revision: since when there is something to do, and until when it may be left. */
  const open = new Map<string, { readonly untilMs: number; readonly what: string }>();

  /** At a time when no delay is over yet: wall clocks of control planes jump, and what is due by them is theirs to say. */
  const ctx: Context = { nowMs: 0, monotonicMs: 0, prng: seededPrng(0), policy, newId: (prefix) => `${prefix}_due` };

  const look = (): void => {
    const seen = new Set<string>();
    let cache: Cache | undefined;
    for (const { key, value, revision } of state.entries()) {
      const concerned =
        (value.kind === 'instance' &&
          (value.status.phase === 'Failed' || value.metadata.deletionRequestedAtMs !== undefined)) ||
        (value.kind === 'allocation' && state.get('host', `hosts/${value.host}`) === undefined);
      if (!concerned) continue;
      if (cache === undefined) {
        cache = new Cache(() => 0);
        cache.reset([...state.entries()], 1);
      }
      for (const controller of value.kind === 'instance' ? [restart, lostHost, garbage] : [garbage]) {
        const delayMs =
          controller === restart && value.kind === 'instance' ? restartDelays * restartDelayOf(value, policy) : 0;
        const { changes, requeueAfterMs } = controller.reconcile(cache, key, ctx);
        if (changes.length === 0 && requeueAfterMs === undefined) continue;
        const name = `${controller.name} ${key} ${revision}`;
        seen.add(name);
        if (!open.has(name))
          open.set(name, { untilMs: nowMs() + Math.max(requeueAfterMs ?? 0, delayMs) + idleMsMax, what: key });
      }
    }
    for (const name of open.keys()) if (!seen.has(name)) open.delete(name);
  };

  return {
    invariant: 3,
    overRestore: 'after',
    unrest() {
      look();
      return []; // it may well come yet: `overdue` says when not
    },
    overdue() {
      for (const [name, { untilMs, what }] of open)
        if (nowMs() > untilMs)
          return `${name.split(' ', 1)[0]} has work to do on ${what}, and for ${idleMsMax / 1000} s nobody does it`;
      return undefined;
    },
  };
}
