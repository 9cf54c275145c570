// Shape: the ranked hosts for requests that host and room rules cannot tell apart. Verdicts are stored host by host and
// shared between shapes. They are updated where a host changed, either by the next reader or for all shapes in use at
// once (hot-shapes.ts).

import type { ChangeLog } from './change-log.ts';
import { DomainRanking } from './domain-ranking.ts';
import type { Fleet } from '../fleet.ts';
import type { Desk } from './desks.ts';
import type { Lane } from './lanes.ts';
import { Leaders, type Scores } from './leaders.ts';
import type { Slot } from './slot.ts';
import { judge, refused, type Rules } from './verdicts.ts';

/**
 * The verdicts of some rules on every host, for all requests that these rules cannot tell apart: the weighted score, or
 * below 0.
 */
export class Verdicts {
  readonly key: string;
  readonly lane: Lane;
  /** Number of shapes that read them. */
  readers = 0;
  readonly #fleet: Fleet;
  readonly #rules: Rules;
  readonly #log: ChangeLog;
  #upTo: number;

  /** `log`: the changes of hosts that may alter these verdicts. */
  constructor(parts: {
    readonly key: string;
    readonly rules: Rules;
    readonly fleet: Fleet;
    readonly log: ChangeLog;
    readonly lane: Lane;
  }) {
    this.key = parts.key;
    this.#rules = parts.rules;
    this.#fleet = parts.fleet;
    this.#log = parts.log;
    this.lane = parts.lane;
    this.#upTo = parts.log.end;
    this.#mendAll();
  }

  of(slot: Slot): number {
    const { cells, width, at } = this.lane;
    return cells[slot * width + at] ?? refused;
  }

  catchUp(): void {
    const log = this.#log;
    if (this.#upTo === log.end) return;
    const count = log.collect(this.#upTo);
    const { changed } = log;
    for (let i = 0; i < count; i++) this.mend(changed[i] ?? 0);
    if (count < 0) this.#mendAll();
    this.#upTo = log.end;
  }

  /** Evaluates the rules again for one host and returns the verdict. */
  mend(slot: Slot): number {
    const { cells, width, at } = this.lane;
    const verdict = this.#fleet.hosts[slot] ? judge(this.#rules, slot) : refused;
    cells[slot * width + at] = verdict;
    return verdict;
  }

  /** Records that all changes up to this position in the log are applied. */
  mendedUpTo(end: number): void {
    this.#upTo = Math.max(this.#upTo, end);
  }

  #mendAll(): void {
    for (let slot = 0; slot < this.#fleet.capacity; slot++) this.mend(slot);
  }
}

export class Shape implements Scores {
  readonly leaders: Leaders;
  readonly onRecord: Verdicts;
  readonly onRoom: Verdicts;
  readonly desk: Desk;
  /** Number of the last request for this shape. */
  usedAt = 0;
  /** Whether it is updated together with others. */
  hot = false;
  readonly #fleet: Fleet;
  readonly #byDomain = new Map<string, DomainRanking>();
  #topologies = 0;
  #upTo = -1;

  constructor(
    fleet: Fleet,
    parts: {
      readonly onRecord: Verdicts;
      readonly onRoom: Verdicts;
      readonly desk: Desk;
      readonly kept: number | undefined;
    },
  ) {
    this.#fleet = fleet;
    this.onRecord = parts.onRecord;
    this.onRoom = parts.onRoom;
    this.desk = parts.desk;
    this.leaders = new Leaders(parts.desk, fleet.names, (slot) => this.of(slot), parts.kept);
    this.catchUp();
  }

  catchUp(): void {
    const { log, length } = this.#fleet;
    if (this.#upTo === log.end) return;
    this.onRecord.catchUp();
    this.onRoom.catchUp();
    const count = this.#upTo < 0 ? -1 : log.collect(this.#upTo);
    const { changed } = log;
    for (let i = 0; i < count; i++) this.leaders.update(changed[i] ?? 0, this.of(changed[i] ?? 0));
    if (count < 0) {
      this.leaders.build(length);
      this.#byDomain.clear();
    }
    this.#upTo = log.end;
  }

  /** Records that the top candidates reflect the log up to this position. */
  mendedUpTo(end: number): void {
    this.#upTo = Math.max(this.#upTo, end);
  }

  of(slot: Slot): number {
    return combined(this.onRecord.of(slot), this.onRoom.of(slot));
  }

  beats(a: Slot, b: Slot): boolean {
    const scoreA = this.of(a);
    const scoreB = this.of(b);
    return scoreA === scoreB ? (this.#fleet.names[a] ?? '') < (this.#fleet.names[b] ?? '') : scoreA > scoreB;
  }

  /** The hosts of each domain in order; updated only when they are read. */
  byDomain(topologyKey: string): DomainRanking {
    const { topologies, length, log } = this.#fleet;
    const topology = topologies.of(topologyKey);
    if (this.#topologies !== topologies.version) this.#byDomain.clear();
    this.#topologies = topologies.version;
    let domains = this.#byDomain.get(topologyKey);
    if (domains?.length !== length || !domains.catchUp(log))
      this.#byDomain.set(topologyKey, (domains = new DomainRanking(this, topology, length, log.end)));
    return domains;
  }
}

/** Rules about the record come first: their reason is the one reported. */
export function combined(onRecord: number, onRoom: number): number {
  if (onRecord < 0) return onRecord;
  return onRoom < 0 ? onRoom : onRecord + onRoom;
}
