// Domains: what group rules ask about hosts and topologies: how many members are near a host, and which domains count
// at all. The hosts that count are cached by fleet and updated with its change log; the cache changes no answer.

import type { Fleet } from '../fleet.ts';
import type { GroupRule, HostPlugin, Refusal } from '../framework.ts';
import { refuse, type Rule } from '../framework.ts';
import type { Count } from './groups.ts';
import { controlPlane } from '../plugins/control-plane.ts';
import { dedicated } from '../plugins/dedicated.ts';
import { hostRules } from '../plugins/host-rules.ts';
import { image } from '../plugins/guests/image.ts';
import { labels } from '../plugins/labels.ts';
import { pool } from '../plugins/pool.ts';
import { traits } from '../plugins/providers/traits.ts';
import type { Request } from '../request.ts';
import type { Slot } from '../engine/slot.ts';

/** The topology in which each host is a domain. */
export const byHost = 'host';

/** By slot: number of members in the same domain; -1 for hosts without a domain. */
export function countNear(count: Count, by: string, fleet: Fleet): (slot: Slot) => number {
  if (by === byHost) {
    const { bySlot } = count;
    return (slot) => bySlot.get(slot) ?? 0;
  }
  const { domainOf } = fleet.topologies.of(by);
  const counts = fleet.groups.byDomain(count, by);
  return (slot) => {
    const domain = domainOf[slot] ?? -1;
    return domain < 0 ? -1 : (counts[domain] ?? 0);
  };
}

/** The host label that all of them use, if it is one. */
export function commonKey(terms: readonly { readonly by: string }[]): string | undefined {
  const by = terms[0]?.by;
  return by === byHost || terms.some((term) => term.by !== by) ? undefined : by;
}

/** `it`, `its zone a`: where a refusal says something is. */
export function describeDomain(by: string, slot: Slot, { hosts }: Fleet): string {
  return by === byHost ? 'it' : `its ${by} ${hosts[slot]?.metadata.labels[by] ?? ''}`.trimEnd();
}

/** Whether any host has the label. */
export function isKnown(by: string, { topologies }: Fleet): boolean {
  return by === byHost || topologies.of(by).numberByValue.size > 0;
}

/** A rule that refuses all hosts for one reason. `refusal` is called when the reason is read. */
export function nowhere(refusal: () => Refusal): GroupRule {
  let made: Refusal | undefined;
  const once = (): Refusal => (made ??= refusal());
  return { filter: once, shortlist: [], scoreMaxElsewhere: null, nowhere: once };
}

export function keyMissing(by: string): Refusal {
  return refuse('TopologyKeyMissing', `it has no label ${by}, which a rule for its neighbours uses`);
}

export function keyUnknown(by: string): GroupRule {
  return nowhere(() =>
    refuse('TopologyKeyMissing', `no host has the label "${by}", which a rule for its neighbours uses`),
  );
}

// Which domains count for spreading: those of hosts whose fixed properties suit the request: pool, labels, traits,
// dedication, architecture. Whether a host is online, paused, tainted or full does not matter, or members would pile up
// elsewhere while a zone is down. (As in Kubernetes: nodeAffinityPolicy Honor, nodeTaintsPolicy Ignore.)

const describing: readonly HostPlugin[] = [controlPlane, dedicated, pool, labels, hostRules, traits, image];

export interface Eligible {
  /** Domain numbers; for `host`, slots. */
  readonly domains: readonly number[];
  has(domain: number): boolean;
}

export function eligibleDomains(request: Request, by: string, fleet: Fleet): Eligible {
  let byTerms = kept.get(fleet);
  if (!byTerms) kept.set(fleet, (byTerms = new Map()));
  const { termsKey } = request;
  let hosts = byTerms.get(termsKey);
  if (!hosts) {
    if (byTerms.size >= keptMax) byTerms.clear();
    const rules = describing.flatMap((plugin) => plugin.prepare(request, fleet) ?? []);
    byTerms.set(termsKey, (hosts = new MeantHosts(fleet, rules)));
  }
  hosts.catchUp();
  return hosts.in(by);
}

/** Number of different requirements kept; one beyond it costs a scan of all hosts. */
const keptMax = 128;
const kept = new WeakMap<Fleet, Map<string, MeantHosts>>();

/** The hosts whose fixed properties suit a request, updated when a record changes. */
class MeantHosts {
  readonly #fleet: Fleet;
  readonly #rules: readonly Rule[];
  /** By slot. */
  readonly #meant: boolean[] = [];
  readonly #byTopology = new Map<string, Eligible>();
  #upTo = -1;
  #topologies = -1;

  constructor(fleet: Fleet, rules: readonly Rule[]) {
    this.#fleet = fleet;
    this.#rules = rules;
  }

  catchUp(): void {
    const { recordLog: log, length, topologies } = this.#fleet;
    if (this.#topologies !== topologies.version) this.#byTopology.clear();
    this.#topologies = topologies.version;
    if (this.#upTo === log.end) return;
    const count = this.#upTo < 0 ? -1 : log.collect(this.#upTo);
    for (let i = 0; i < count; i++) this.#look(log.changed[i] ?? 0);
    if (count < 0) for (let slot = 0; slot < length; slot++) this.#look(slot);
    this.#upTo = log.end;
  }

  #look(slot: Slot): void {
    const meant = this.#fleet.hosts[slot] !== undefined && this.#rules.every(({ filter }) => !filter?.(slot));
    if (meant === (this.#meant[slot] ?? false)) return;
    this.#meant[slot] = meant;
    this.#byTopology.clear();
  }

  in(by: string): Eligible {
    let eligible = this.#byTopology.get(by);
    if (!eligible) {
      const domainOf = by === byHost ? null : this.#fleet.topologies.of(by).domainOf;
      // A topology has no more domains than there are hosts.
      const found = new Uint8Array(this.#meant.length);
      const domains: number[] = [];
      for (let slot = 0; slot < this.#meant.length; slot++) {
        const domain = domainOf ? (domainOf[slot] ?? -1) : slot;
        if (!this.#meant[slot] || domain < 0 || found[domain] === 1) continue;
        found[domain] = 1;
        domains.push(domain);
      }
      this.#byTopology.set(by, (eligible = { domains, has: (domain) => found[domain] === 1 }));
    }
    return eligible;
  }
}
