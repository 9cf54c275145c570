// What a scheduling rule is. A plugin looks at one request and answers a rule for it, or null when it has nothing to say. Rules are
// pure and small; they never see other requests, the clock or the store. Speed is the engine's matter (engine.ts).

import type { Fleet } from './fleet.ts';
import type { Request } from './request.ts';
import type { Slot } from './engine/slot.ts';

/** Why a host is not for a request: a CamelCase code that is counted, and the sentence for the host, made when someone reads it. */
export interface Refusal {
  readonly reason: string;
  readonly message: (slot: Slot) => string;
}

/** A rule that refuses many hosts for one reason makes this once. */
export function refuse(reason: string, message: string | ((slot: Slot) => string)): Refusal {
  return { reason, message: typeof message === 'string' ? () => message : message };
}

/** One plugin's say on one request. */
export interface Rule {
  /** Null when the host may take the request; all rules must agree. */
  filter?(slot: Slot): Refusal | null;
  /** How good the host is, 0..100, fractions too. Weighed by profile; asked only for hosts that fit. */
  score?(slot: Slot): number;
}

/** A rule that looks at where other instances are; it is made anew for each decision. */
export interface GroupRule extends Rule {
  /** Hosts to look at before all others, few. */
  readonly shortlist?: readonly Slot[];
  /** No host outside the shortlist scores more than this (default 100); null: all of them are refused. */
  readonly scoreMaxElsewhere?: number | null;
  /** The key of a label of hosts: those with one value of it (and those without it) are all told the same. */
  readonly uniformBy?: string | undefined;
  /** What it says of a host hangs on the members on that host alone (and on the request). */
  readonly perHost?: boolean;
  /** With `perHost`: numbers that are the same for all hosts, on which it hangs besides. */
  readonly given?: string;
  /** All hosts are refused, and for this: the same for each. */
  readonly nowhere?: () => Refusal;
}

interface PluginOf<D extends string, R extends Rule> {
  readonly name: string;
  /** One line for people: what the rule is for. */
  readonly summary: string;
  /**
   * What the verdict on a host hangs on, besides the request:
   * `host`: its record (labels, traits, taints, drivers, ...), which seldom changes; of the request it may read `terms` only, and the
   *   verdict is shared by all requests with equal terms;
   * `room`: what is free there, which every claim changes; shared by all requests of one shape;
   * `group`: where other instances are; shared by none.
   */
  readonly dependsOn: D;
  prepare(request: Request, fleet: Fleet): R | null;
}

export type HostPlugin = PluginOf<'host', Rule>;
export type RoomPlugin = PluginOf<'room', Rule>;
export type GroupPlugin = PluginOf<'group', GroupRule>;
export type Plugin = HostPlugin | RoomPlugin | GroupPlugin;
