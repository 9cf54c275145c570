// Engine: the best host for a request, without looking at all of them. Requests of one shape share their leaders, mended only where a
// host changed since they were last used. Its answer is that of the plain full scan (full-scan.ts); a property test holds them together.
//
//   request ──▶ terms ──▶ Verdicts: may it go there, by the host's record       (mended when a record changes)
//           ──▶ room ───▶ Verdicts: is there enough, how well does it sit       (mended when a claim is made)
//           ──▶ both ───▶ Shape: hosts in order                                 (mended likewise)
//           ──▶ groups ─▶ walked down from the best: where are the others       (asked anew each time)

import { Best, type Choice } from './best.ts';
import { chooseAmong, type WalkLimits, walkLimits } from './choose-among.ts';
import { DomainRanking } from './domain-ranking.ts';
import type { ChangeLog } from './change-log.ts';
import type { Fleet } from './fleet.ts';
import type { Refusal } from './framework.ts';
import type { Slot } from './slot.ts';
import { GroupedLeaders } from './grouped-leaders.ts';
import { Leaders, type Scores } from './leaders.ts';
import { groupPlugins, hostPlugins, roomPlugins } from './registry.ts';
import type { Request } from './request.ts';
import { type GroupRules, judge, prepareGroupRules, prepareRules, reasonOf, refused, type Rules } from './verdicts.ts';

/** So many shapes are kept; one holds a byte for each host, and half a MiB at 65,536 hosts with its verdicts on room. */
const shapesMax = 512;
const roomsBytesMax = 128 << 20;
/** For large groups; at 65,536 hosts 1,024 of them. */
const groupedBytesMax = 64 << 20;
/** How many shapes that were seen once are remembered: only the second of a shape is worth leaders. */
const onceSeenMax = 4096;

export class Engine {
  readonly fleet: Fleet;
  readonly #onRecord = new Map<string, Verdicts>();
  readonly #onRoom = new Map<string, Verdicts>();
  readonly #shapes = new Map<string, Shape>();
  readonly #seenOnce = new Set<string>();
  #layout: number;
  #uses = 0;
  readonly #limits: WalkLimits;
  /** By shape, and what it asks about neighbours; those used last are at the end. */
  readonly #grouped = new Map<string, GroupedLeaders>();

  constructor(fleet: Fleet, limits: WalkLimits = walkLimits) {
    this.fleet = fleet;
    this.#limits = limits;
    this.#layout = fleet.layout;
  }

  /** The best host, or null when none fits. */
  choose(request: Request): Choice | null {
    const groupRules = prepareGroupRules(groupPlugins, request, this.fleet);
    if (groupRules?.nowhere) return null;
    if (this.#isNew(request)) return this.#scan(request, groupRules);
    const shape = this.#shapeOf(request);
    const { leaders } = shape;
    if (!groupRules) {
      const slot = leaders.best(this.fleet.length);
      return slot < 0 ? null : { slot, score: shape.of(slot), fitCount: leaders.fitCount };
    }
    // Large groups first: whose walk once came to no end need not begin it again.
    const known =
      groupRules.perHost && this.#grouped.size > 0 ? this.#grouped.get(groupedKeyOf(request, groupRules)) : undefined;
    if (known?.base === shape) return this.#groupedFor(request, groupRules, shape).choose(groupRules);
    const ranked = {
      scores: shape,
      leaders,
      byDomain: (topologyKey: string) => shape.byDomain(topologyKey),
      grouped: () => this.#groupedFor(request, groupRules, shape),
    };
    return chooseAmong(ranked, groupRules, this.fleet, this.#limits);
  }

  #groupedFor(request: Request, rules: GroupRules, shape: Shape): GroupedLeaders {
    const key = groupedKeyOf(request, rules);
    let grouped = this.#grouped.get(key);
    this.#grouped.delete(key);
    if (grouped?.base !== shape) grouped = new GroupedLeaders(shape, this.fleet, this.#limits.leaders);
    this.#grouped.set(key, grouped);
    for (const oldest of this.#grouped.keys()) {
      if (this.#grouped.size <= groupedBytesMax / this.fleet.capacity) break;
      this.#grouped.delete(oldest);
    }
    return grouped;
  }

  /** How many hosts fit, groups aside. Costs a look at each host when the shape is new. */
  fitCount(request: Request): number {
    return this.#shapeOf(request).leaders.fitCount;
  }

  /** Whether the host fits, groups aside. */
  fitsAt(request: Request, slot: Slot): boolean {
    return this.#shapeOf(request).of(slot) >= 0;
  }

  /** The rule about neighbours that refuses all hosts for one reason, if there is one. */
  nowhere(request: Request): Refusal | null {
    return prepareGroupRules(groupPlugins, request, this.fleet)?.nowhere ?? null;
  }

  /** Of each host the first rule's reason to refuse it, counted. Hosts that fit are in none. */
  countRefusals(request: Request): ReadonlyMap<string, number> {
    const shape = this.#shapeOf(request);
    const groupRules = prepareGroupRules(groupPlugins, request, this.fleet);
    const counts = new Map<string, number>();
    for (let slot = 0; slot < this.fleet.length; slot++) {
      let verdict = shape.of(slot);
      if (verdict >= 0 && groupRules) verdict = judge(groupRules, slot);
      const reason = verdict < 0 ? reasonOf(verdict) : undefined;
      if (reason !== undefined) counts.set(reason, (counts.get(reason) ?? 0) + 1);
    }
    return counts;
  }

  /** Whether the shape was never asked for before: it is remembered now. */
  #isNew({ shapeKey }: Request): boolean {
    this.#forgetOldLayout();
    if (this.#shapes.has(shapeKey) || this.#seenOnce.has(shapeKey)) return false;
    if (this.#seenOnce.size >= onceSeenMax) this.#seenOnce.clear();
    this.#seenOnce.add(shapeKey);
    return true;
  }

  #shapeOf(request: Request): Shape {
    this.#forgetOldLayout();
    let shape = this.#shapes.get(request.shapeKey);
    if (!shape) {
      const { fleet } = this;
      if (this.#shapes.size >= Math.min(shapesMax, roomsBytesMax / (8 * fleet.capacity))) this.#forgetOldest();
      shape = new Shape(fleet, this.#verdictsOnRecord(request), this.#verdictsOnRoom(request), this.#limits.leaders);
      this.#shapes.set(request.shapeKey, shape);
    } else shape.catchUp();
    shape.usedAt = ++this.#uses;
    return shape;
  }

  #forgetOldLayout(): void {
    if (this.#layout === this.fleet.layout) return;
    this.#layout = this.fleet.layout;
    this.#onRecord.clear();
    this.#onRoom.clear();
    this.#shapes.clear();
    this.#grouped.clear();
  }

  #verdictsOnRecord(request: Request): Verdicts {
    let verdicts = this.#onRecord.get(request.termsKey);
    if (!verdicts) {
      if (this.#onRecord.size >= shapesMax) this.#onRecord.clear(); // shapes keep those they use
      verdicts = new Verdicts(prepareRules(hostPlugins, request, this.fleet), this.fleet, this.fleet.recordLog);
      this.#onRecord.set(request.termsKey, verdicts);
    }
    return verdicts;
  }

  #verdictsOnRoom(request: Request): Verdicts {
    let verdicts = this.#onRoom.get(request.roomKey);
    if (!verdicts) {
      if (this.#onRoom.size >= shapesMax) this.#onRoom.clear();
      verdicts = new Verdicts(prepareRules(roomPlugins, request, this.fleet), this.fleet, this.fleet.log);
      this.#onRoom.set(request.roomKey, verdicts);
    }
    return verdicts;
  }

  #forgetOldest(): void {
    let oldest: string | undefined;
    let usedAt = Number.POSITIVE_INFINITY;
    for (const [key, shape] of this.#shapes) {
      if (shape.usedAt >= usedAt) continue;
      usedAt = shape.usedAt;
      oldest = key;
    }
    if (oldest !== undefined) this.#shapes.delete(oldest);
  }

  /** A shape never seen: one pass over all hosts, nothing kept but the verdicts on their records. */
  #scan(request: Request, groupRules: GroupRules | null): Choice | null {
    const { fleet } = this;
    const onRecord = this.#verdictsOnRecord(request);
    onRecord.catchUp();
    const rules = prepareRules(roomPlugins, request, fleet);
    const best = new Best(fleet.names);
    let fitCount = 0;
    for (let slot = 0; slot < fleet.length; slot++) {
      const record = onRecord.scores[slot] ?? refused;
      const base = record < 0 ? record : combined(record, judge(rules, slot));
      if (base < 0) continue;
      fitCount += 1;
      if (!groupRules) best.offer(slot, base);
      else {
        const score = judge(groupRules, slot);
        if (score >= 0) best.offer(slot, base + score);
      }
    }
    return best.choice(fitCount);
  }
}

/** What some rules say of every host, for all requests that they cannot tell apart. */
class Verdicts {
  /** By slot: the weighed score, or below 0. */
  readonly scores: Float64Array;
  readonly #fleet: Fleet;
  readonly #rules: Rules;
  readonly #log: ChangeLog;
  #upTo: number;

  /** `log`: of the changes of a host after which the rules may say something else. */
  constructor(rules: Rules, fleet: Fleet, log: ChangeLog) {
    this.#fleet = fleet;
    this.#rules = rules;
    this.#log = log;
    this.scores = new Float64Array(fleet.capacity).fill(refused);
    this.#upTo = log.end;
    this.#judgeAll();
  }

  catchUp(): void {
    const log = this.#log;
    if (this.#upTo === log.end) return;
    const count = log.collect(this.#upTo);
    const { changed } = log;
    for (let i = 0; i < count; i++) this.#judge(changed[i] ?? 0);
    if (count < 0) this.#judgeAll();
    this.#upTo = log.end;
  }

  #judgeAll(): void {
    for (let slot = 0; slot < this.#fleet.length; slot++) this.#judge(slot);
  }

  #judge(slot: Slot): void {
    this.scores[slot] = this.#fleet.hosts[slot] ? judge(this.#rules, slot) : refused;
  }
}

/** The hosts for the requests of one shape. */
class Shape implements Scores {
  readonly leaders: Leaders;
  usedAt = 0;
  readonly #fleet: Fleet;
  readonly #onRecord: Verdicts;
  readonly #onRoom: Verdicts;
  readonly #byDomain = new Map<string, DomainRanking>();
  #topologies = 0;
  #upTo: number;

  constructor(fleet: Fleet, onRecord: Verdicts, onRoom: Verdicts, kept: number | undefined) {
    this.#fleet = fleet;
    this.#onRecord = onRecord;
    this.#onRoom = onRoom;
    this.leaders = new Leaders(fleet.capacity, fleet.names, (slot) => this.of(slot), kept);
    this.#upTo = -1;
    this.catchUp();
  }

  catchUp(): void {
    const { log, length } = this.#fleet;
    if (this.#upTo === log.end) return;
    this.#onRecord.catchUp();
    this.#onRoom.catchUp();
    const count = this.#upTo < 0 ? -1 : log.collect(this.#upTo);
    const { changed } = log;
    const { leaders } = this;
    const onRecord = this.#onRecord.scores;
    const onRoom = this.#onRoom.scores;
    for (let i = 0; i < count; i++) {
      const slot = changed[i] ?? 0;
      leaders.update(slot, combined(onRecord[slot] ?? refused, onRoom[slot] ?? refused));
    }
    if (count < 0) {
      leaders.build(length);
      this.#byDomain.clear();
    }
    this.#upTo = log.end;
  }

  of(slot: Slot): number {
    return combined(this.#onRecord.scores[slot] ?? refused, this.#onRoom.scores[slot] ?? refused);
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
function combined(onRecord: number, onRoom: number): number {
  if (onRecord < 0) return onRecord;
  return onRoom < 0 ? onRoom : onRecord + onRoom;
}

function groupedKeyOf({ shapeKey, groups, belonging }: Request, { given }: GroupRules): string {
  return JSON.stringify([shapeKey, groups, belonging, given]);
}
