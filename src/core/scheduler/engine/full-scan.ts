// Full scan: evaluates every rule on every host. Explanations are built from it, and the engine must give the same
// answer: a property test compares the two.

import type { Fleet } from '../fleet.ts';
import type { Plugin } from '../framework.ts';
import type { Slot } from './slot.ts';
import { plugins } from '../registry.ts';
import type { Request } from '../request.ts';
import { inSteps } from './verdicts.ts';

export interface Refused {
  readonly plugin: string;
  readonly reason: string;
  readonly message: () => string;
}

export interface HostVerdict {
  readonly slot: Slot;
  readonly host: string;
  /** All rules that refuse the host, in registry order. */
  readonly refusals: readonly Refused[];
  /** Weighted, by plugin; empty when the host is refused. */
  readonly scores: Readonly<Record<string, number>>;
  readonly score: number;
}

/** Yields hosts in slot order. */
export function* fullScan(request: Request, fleet: Fleet): Iterable<HostVerdict> {
  const verdictOn = verdictsOf(request, fleet);
  for (let slot = 0; slot < fleet.length; slot++) if (fleet.hosts[slot]) yield verdictOn(slot);
}

/** All verdicts on single hosts, for the current fleet. Must be rebuilt after the fleet changes. */
export function verdictsOf(request: Request, fleet: Fleet): (slot: Slot) => HostVerdict {
  const rules = plugins.flatMap((plugin: Plugin) => {
    const rule = plugin.prepare(request, fleet);
    return rule ? [{ name: plugin.name, rule, weight: request.weights[plugin.name] ?? 0 }] : [];
  });
  return (slot) => {
    const refusals: Refused[] = [];
    for (const { name, rule } of rules) {
      const refusal = rule.filter?.(slot);
      if (refusal) refusals.push({ plugin: name, reason: refusal.reason, message: () => refusal.message(slot) });
    }
    const host = fleet.names[slot] ?? '';
    if (refusals.length > 0) return { slot, host, refusals, scores: notWeighed, score: 0 };
    const scores: Record<string, number> = {};
    let score = 0;
    for (const { name, rule, weight } of rules) {
      if (!rule.score || weight === 0) continue;
      const points = weight * inSteps(rule.score(slot));
      scores[name] = points;
      score += points;
    }
    return { slot, host, refusals, scores, score };
  };
}

const notWeighed: Readonly<Record<string, number>> = {};
