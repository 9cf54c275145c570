// Shape: the hosts for requests that rules about records and room cannot tell apart, in order. What rules say is kept host by host
// (Verdicts) and shared by shapes; it is mended where a host changed, by whoever asks or for all that are in use at once (hot-shapes.ts).

import type { ChangeLog } from './change-log.ts';
import { DomainRanking } from './domain-ranking.ts';
import type { Fleet } from '../fleet.ts';
import type { Desk } from './desks.ts';
import type { Lane } from './lanes.ts';
import { Leaders, type Scores } from './leaders.ts';
import type { Slot } from './slot.ts';
import { judge, refused, type Rules } from './verdicts.ts';

/** What some rules say of every host, for all requests that they cannot tell apart: the weighed score, or below 0. */
export class Verdicts {
  readonly key: string;
  readonly lane: Lane;
  /** How many shapes read them. */
  readers = 0;
  readonly #fleet: Fleet;
  readonly #rules: Rules;
  readonly #log: ChangeLog;
  #upTo: number;

  /** `log`: of the changes of a host after which the rules may say something else. */
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

  /** Answers what they say now. */
  mend(slot: Slot): number {
    const { cells, width, at } = this.lane;
    const verdict = this.#fleet.hosts[slot] ? judge(this.#rules, slot) : refused;
    cells[slot * width + at] = verdict;
    return verdict;
  }

  /** It has been mended where a host changed, up to there in the log. */
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
  /** When it was last asked for, in questions. */
  usedAt = 0;
  /** Whether it is mended together with others. */
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

  /** Its leaders have been told of what changed, up to there in the log. */
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

  /** The hosts of each domain in order; mended only when they are asked for. */
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

/** Rules about the record come first: theirs is the reason that is told. */
export function combined(onRecord: number, onRoom: number): number {
  if (onRecord < 0) return onRecord;
  return onRoom < 0 ? onRoom : onRecord + onRoom;
}
