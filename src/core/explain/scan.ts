// Scan: the verdicts of all hosts on one request, in steps, with the reasons counted. Messages are built for a few
// examples only.

import type { ReasonExplanation } from '../../api/explanation.ts';
import type { Fleet } from '../scheduler/fleet.ts';
import { type HostVerdict, verdictsOf } from '../scheduler/engine/full-scan.ts';
import type { Request } from '../scheduler/request.ts';
import type { Slot } from '../scheduler/engine/slot.ts';
import { hostsPerStep, type Steps } from '../scheduler/steps.ts';

export interface Brief {
  readonly slot: Slot;
  readonly host: string;
  /** Number of rules that refuse. */
  readonly refusals: number;
  readonly score: number;
}

export interface Scan {
  readonly verdicts: readonly Brief[];
  readonly fit: number;
  /** The most frequent first. */
  readonly reasons: readonly ReasonExplanation[];
  /** For refused hosts: the rules that refuse. */
  readonly refused: ReadonlyMap<Slot, readonly string[]>;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const examplesMax = 3;

/** `within` runs the evaluations of each step inside their trial. */
export function* scan(fleet: Fleet, request: Request, within: (body: () => void) => void): Steps<Scan> {
  const verdicts: Brief[] = [];
  const reasons = new Map<string, Mutable<ReasonExplanation>>();
  const refused = new Map<Slot, readonly string[]>();
  const note = ({ slot, host, refusals, score }: HostVerdict): void => {
    verdicts.push({ slot, host, refusals: refusals.length, score });
    if (refusals.length === 0) return;
    const rules = refusals.map(({ plugin }) => plugin);
    refused.set(slot, rules);
    for (const { plugin, reason, message } of refusals) {
      const key = `${plugin} ${reason}`;
      let known = reasons.get(key);
      if (!known) reasons.set(key, (known = { reason, rule: plugin, hosts: 0, alone: 0, examples: [] }));
      known.hosts += 1;
      if (refusals.length === 1) known.alone += 1;
      if (known.examples.length < examplesMax) known.examples.push({ host, message: message() });
    }
  };
  for (let from = 0; from < fleet.length; from += hostsPerStep) {
    if (from > 0) yield;
    within(() => {
      const verdictOn = verdictsOf(request, fleet);
      const end = Math.min(fleet.length, from + hostsPerStep);
      for (let slot = from; slot < end; slot++) if (fleet.hosts[slot]) note(verdictOn(slot));
    });
  }
  return {
    verdicts,
    fit: verdicts.length - refused.size,
    reasons: [...reasons.values()].sort((a, b) => b.hosts - a.hosts || (a.reason < b.reason ? -1 : 1)),
    refused,
  };
}

/** Hosts that fit first, the best of them first; the others by name. */
export function bestFirst(a: Brief, b: Brief): number {
  return Number(a.refusals > 0) - Number(b.refusals > 0) || b.score - a.score || (a.host < b.host ? -1 : 1);
}
