// Scheduling: of all hosts that no rule refuses, the one with the best score. Pure; the caller turns it into a Plan.

import type { Allocation } from '../state/records.ts';
import { assign } from '../ledger/tree.ts';
import { assert } from '../../base/assert.ts';
import type { Snapshot } from '../state/snapshot.ts';
import type { Choice } from './engine/best.ts';
import { Engine } from './engine/engine.ts';
import { type Fleet, fleetOf } from './fleet.ts';
import type { Request } from './request.ts';
import { wantedDriver } from './wanted-driver.ts';

export type Placement =
  | Placed
  | {
      readonly placed: false;
      readonly hosts: number;
      readonly refusals: readonly RefusalCount[];
      readonly byQuery?: boolean;
    };

export interface Placed {
  readonly placed: true;
  readonly host: string;
  readonly driver: string;
  /** Amounts by provider id, then resource class. */
  readonly held: Allocation['amounts'];
  readonly score: number;
  /** Number of hosts that fit, without the rules about groups. */
  readonly hostsFit: number;
  readonly neighboursAsked: boolean;
  readonly hosts: number;
}

export interface RefusalCount {
  readonly reason: string;
  readonly hosts: number;
  /** The sentence of the refusal, when it is the same for all hosts. */
  readonly message?: string;
}

const engines = new WeakMap<Fleet, Engine>();

/**
 * The engine of a snapshot's fleet. It is cached by fleet, keeps its rankings from one decision to the next, and
 * changes no answer.
 */
export function engineOf(snapshot: Snapshot): Engine {
  const fleet = fleetOf(snapshot);
  let engine = engines.get(fleet);
  if (!engine) engines.set(fleet, (engine = new Engine(fleet)));
  return engine;
}

export function schedule(snapshot: Snapshot, request: Request): Placement {
  const engine = engineOf(snapshot);
  const { fleet } = engine;
  const choice = engine.choose(request);
  if (!choice) {
    const nowhere = engine.nowhere(request);
    const refusals = refusalsOf(engine.countRefusals(request)).map((each) =>
      each.reason === nowhere?.reason ? { ...each, message: nowhere.message(-1) } : each,
    );
    return { placed: false, hosts: fleet.count, refusals, ...(request.byQuery ? { byQuery: true } : {}) };
  }
  return placementAt(fleet, request, choice);
}

/** The placement of the request on this host, where it fits: providers, amounts and driver. */
export function placementAt(fleet: Fleet, request: Request, choice: Choice): Placed {
  const { slot, score, fitCount, neighboursAsked = false } = choice;
  const assignment = assign(fleet.tree(slot), request);
  assert(assignment.fits, `${fleet.names[slot]} was chosen and does not fit`);
  return {
    placed: true,
    host: fleet.names[slot] ?? '',
    driver: wantedDriver(request.terms) ?? fleet.drivers[slot] ?? '',
    held: assignment.held,
    score,
    hostsFit: fitCount,
    neighboursAsked,
    hosts: fleet.count,
  };
}

/** The most frequent first. */
export function refusalsOf(counts: ReadonlyMap<string, number>): RefusalCount[] {
  return [...counts]
    .map(([reason, hosts]) => ({ reason, hosts }))
    .sort((a, b) => b.hosts - a.hosts || (a.reason < b.reason ? -1 : 1));
}

/** The message recorded with a placement, for `explain` to repeat later. */
export function placedMessage({ host, hostsFit, neighboursAsked, hosts, score }: Placed): string {
  // Joined into one flat string, because it is kept with every instance: `${}` would make a chain of its pieces.
  const parts = [
    'placed on ',
    host,
    ': best of ',
    hostsFit,
    neighboursAsked ? ' that fit but for their neighbours, of ' : ' that fit, of ',
    hosts,
    ' (score ',
    Math.round(score * 10) / 10,
    ')',
  ];
  return parts.join('');
}

/**
 * Parses the text of `placedMessage`; undefined for another kind of placement. `hostsFit`: absent when neighbours were
 * evaluated.
 */
export function readPlacedMessage(
  message: string,
): { readonly hostsFit: number | undefined; readonly hosts: number; readonly score: number } | undefined {
  const told = /: best of (\d+) that fit( but for their neighbours)?, of (\d+) \(score ([\d.]+)\)$/.exec(message);
  if (!told) return undefined;
  const [, hostsFit, aside, hosts, score] = told;
  return {
    hostsFit: aside === undefined ? Number(hostsFit) : undefined,
    hosts: Number(hosts),
    score: Number(score),
  };
}

/**
 * `0 of 12 hosts: 7 InsufficientMemory, 5 DriverMissing`; for a request by query, after the text that its users know.
 */
export function summarize({ hosts, refusals, byQuery }: Extract<Placement, { placed: false }>): string {
  const prefix = byQuery ? 'NO ALLOCATIONS LEFT: ' : '';
  if (hosts === 0) return `${prefix}no host has joined yet; "berth agent" on a machine makes it one`;
  const parts = refusals.map(
    ({ reason, hosts: count, message }) => `${count} ${reason}${message === undefined ? '' : `: ${message}`}`,
  );
  return `${prefix}0 of ${hosts} host${hosts === 1 ? '' : 's'}: ${parts.join(', ')}`;
}

/** Why an instance cannot leave its host: `others` is how many other hosts there are. */
export function noOtherHost(others: number, refusals: Extract<Placement, { placed: false }>['refusals']): string {
  if (others <= 0) return 'there is no other host';
  return `no other host takes it: ${summarize({ placed: false, hosts: others, refusals })}`;
}
