// Invariant 4, as far as the API goes: one idempotency key makes at most one instance, however often it is sent and to whomever.

import { keyLabel } from '../intents.ts';
import type { Checker, Facts } from './checker.ts';

export function idempotencyChecker({ state }: Facts): Checker {
  const made = new Map<string, string>();
  return {
    invariant: 4,
    onCommit({ events }) {
      for (const { before, after } of events) {
        if (after?.kind !== 'instance') continue;
        // One may go and another of its name come in one commit.
        if (before?.kind === 'instance' && before.metadata.id === after.metadata.id) continue;
        const key = after.metadata.labels[keyLabel];
        if (key === undefined) continue;
        const other = made.get(key);
        if (other !== undefined) return `idempotency key ${key} made ${other} and ${after.metadata.id}`;
        made.set(key, after.metadata.id);
      }
      return undefined;
    },
    recount() {
      for (const { metadata } of state.list('instance')) {
        const key = metadata.labels[keyLabel];
        if (key !== undefined && made.get(key) !== metadata.id) return `never saw ${metadata.id} made with ${key}`;
      }
      return undefined;
    },
  };
}
