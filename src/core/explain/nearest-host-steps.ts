// Host steps: what an operator can do about a host that takes no instances. Each is a change of the host's record, for
// a trial.

import type { NearestChange } from '../../api/explanation.ts';
import type { Host } from '../../api/resources/host.ts';
import { isReady, withConditions } from '../state/conditions.ts';
import type { Fleet } from '../scheduler/fleet.ts';
import { hostsTriedMax, hostWords, placesOf } from './nearest-question.ts';
import type { Slot } from '../scheduler/engine/slot.ts';

export interface HostStep {
  readonly change: 'ResumeHost' | 'HostBack' | 'RemoveTaint';
  readonly cost: number;
  /** For one host, and for several. */
  readonly words: (hosts: string) => string;
  /** The changed host; null where nothing would change. */
  readonly apply: (host: Host) => Host | null;
}

export const hostSteps: readonly HostStep[] = [
  {
    change: 'ResumeHost',
    cost: 2,
    words: (hosts) => `resume ${hosts}`,
    apply: (host) => (host.spec.paused ? { ...host, spec: { ...host.spec, paused: false } } : null),
  },
  {
    change: 'HostBack',
    cost: 3,
    words: (hosts) => `${hosts} comes back`,
    apply(host) {
      const { status } = host;
      if (isReady(status)) return null;
      const ready = { type: 'Ready', status: 'True', reason: 'Supposed', message: 'if it were connected' } as const;
      return { ...host, status: { ...status, conditions: withConditions(status.conditions, [ready], 0) } };
    },
  },
  {
    change: 'RemoveTaint',
    cost: 3,
    words: (hosts) => `remove the taints of ${hosts}`,
    apply(host) {
      const { taints, ...spec } = host.spec;
      return taints && taints.length > 0 ? { ...host, spec } : null;
    },
  },
];

/** Each step alone, and all steps that a host needs together. */
export const stepSets: readonly (readonly HostStep[])[] = [...hostSteps.map((step) => [step]), hostSteps];

export interface ChangedHost {
  readonly slot: Slot;
  readonly host: Host;
  readonly done: readonly HostStep[];
}

/** The hosts among these that the steps would change; for a set of several steps only those that need more than one. */
export function changedHosts(fleet: Fleet, slots: Iterable<Slot>, steps: readonly HostStep[]): ChangedHost[] {
  const changed: ChangedHost[] = [];
  for (const slot of slots) {
    if (changed.length === hostsTriedMax) break;
    let host = fleet.hosts[slot];
    const done: HostStep[] = [];
    for (const step of steps) {
      const after = host && step.apply(host);
      if (!after) continue;
      host = after;
      done.push(step);
    }
    if (host && done.length > 0 && (steps.length === 1 || done.length > 1)) changed.push({ slot, host, done });
  }
  return changed;
}

/** The message for each set of steps that helps; `whom` is appended. */
export function stepsTold(fleet: Fleet, helpful: readonly ChangedHost[], whom = ''): NearestChange[] {
  const byDone = Map.groupBy(helpful, ({ done }) => done.map(({ change }) => change).join());
  return [...byDone.values()].map((all) => {
    const done = all[0]?.done ?? [];
    const where = all.map(({ slot }) => slot);
    return {
      change: stepChange(done),
      message: `${stepWords(done, hostWords(fleet, where))}${whom}`,
      ...placesOf(fleet, where),
      cost: done.reduce((sum, { cost }) => sum + cost, 0),
    };
  });
}

/** `resume host h1, and it comes back`. */
function stepWords(done: readonly HostStep[], hosts: string): string {
  return done.map(({ words }, index) => words(index === 0 ? hosts : 'it')).join(', and ');
}

function stepChange(done: readonly HostStep[]): HostStep['change'] | 'Several' {
  const [only] = done;
  return only && done.length === 1 ? only.change : 'Several';
}
