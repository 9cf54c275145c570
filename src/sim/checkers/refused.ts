// Not one of the numbered invariants: what was refused has changed nothing. Whatever rogues send to be refused bears a label of theirs.

import { rogueLabel } from '../world/rogue-client.ts';
import type { Checker } from './checker.ts';

export function refusedChecker(): Checker {
  return {
    invariant: 0,
    overRestore: 'throughout',
    onCommit({ events }) {
      for (const { key, after } of events)
        if (after !== null && 'metadata' in after && after.kind !== 'event' && rogueLabel in after.metadata.labels)
          return `${key} bears what a rogue sent to be refused`;
      return undefined;
    },
  };
}
