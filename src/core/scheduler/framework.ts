// The contract of a scheduling rule. A plugin takes one request and returns a rule for it, or null when it does not
// apply. Rules are pure and small; they never see other requests, the clock or the store. Speed is the engine's job
// (engine.ts).

import type { Fleet } from './fleet.ts';
import type { Request } from './request.ts';
import type { Slot } from './engine/slot.ts';

/** Why a host is refused: a CamelCase code that is counted, and a sentence about the host, built when it is read. */
export interface Refusal {
  readonly reason: string;
  readonly message: (slot: Slot) => string;
}

/** A rule that refuses many hosts for one reason creates this once. */
export function refuse(reason: string, message: string | ((slot: Slot) => string)): Refusal {
  return { reason, message: typeof message === 'string' ? () => message : message };
}

/** The rule of one plugin for one request. */
export interface Rule {
  /** Null when the host may take the request; all filters must agree. */
  filter?(slot: Slot): Refusal | null;
  /** How good the host is: 0 to 100, fractions allowed. Weighted by the profile; called only for hosts that fit. */
  score?(slot: Slot): number;
}

/** A rule that looks at where other instances are; created again for each decision. */
export interface GroupRule extends Rule {
  /** Hosts to examine before all others; a short list. */
  readonly shortlist?: readonly Slot[];
  /** No host outside the shortlist scores more than this (default 100); null: all of them are refused. */
  readonly scoreMaxElsewhere?: number | null;
  /** A host label: the verdict is the same for all hosts with one value of it, and for all hosts without it. */
  readonly uniformBy?: string | undefined;
  /** The verdict on a host depends only on the members on that host and on the request. */
  readonly perHost?: boolean;
  /** With `perHost`: further inputs of the verdict, which are the same for all hosts. */
  readonly given?: string;
  /** The reason that refuses every host alike. */
  readonly nowhere?: () => Refusal;
}

interface PluginOf<D extends string, R extends Rule> {
  readonly name: string;
  /** One line for users: the purpose of the rule. */
  readonly summary: string;
  /**
   * What the verdict on a host depends on besides the request:
   * `host`: its record (labels, traits, taints, drivers, ...), which changes rarely; of the request it may read `terms` only, and the
   *   verdict is shared by all requests with equal terms;
   * `room`: what is free there, which every claim changes; shared by all requests of one shape;
   * `group`: where other instances are; not shared.
   */
  readonly dependsOn: D;
  prepare(request: Request, fleet: Fleet): R | null;
}

export type HostPlugin = PluginOf<'host', Rule>;
export type RoomPlugin = PluginOf<'room', Rule>;
export type GroupPlugin = PluginOf<'group', GroupRule>;
export type Plugin = HostPlugin | RoomPlugin | GroupPlugin;
