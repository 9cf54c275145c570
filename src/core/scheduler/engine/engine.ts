// Engine: finds the best host for a request without examining all hosts. Requests of one shape share their top candidates, which are
// updated only where a host changed. Its answer equals that of the full scan (full-scan.ts); a property test compares the two.
//
//   request ──▶ terms ──▶ Verdicts: is it allowed there, by the host's record   (updated when a record changes)
//           ──▶ room ───▶ Verdicts: is there enough, how well does it fit       (updated when a claim is made)
//           ──▶ both ───▶ Shape: the top candidates                             (updated likewise, those in use together)
//           ──▶ groups ─▶ walk down from the best: where are the others         (evaluated for each decision)

import { Best, type Choice } from './best.ts';
import { chooseAmong, type WalkLimits, walkLimits } from './choose-among.ts';
import type { Fleet } from '../fleet.ts';
import type { Refusal } from '../framework.ts';
import type { Slot } from './slot.ts';
import { GroupedLeaders } from './grouped-leaders.ts';
import { HotShapes } from './hot-shapes.ts';
import { Desks } from './desks.ts';
import { groupPlugins, hostPlugins, roomPlugins } from '../registry.ts';
import type { Request } from '../request.ts';
import { combined, Shape } from './shape.ts';
import { SharedVerdicts } from './shared-verdicts.ts';
import { type GroupRules, judge, prepareGroupRules, prepareRules, reasonOf } from './verdicts.ts';

/**
 * Maximum number of shapes kept. One shape takes a byte per host, and half a MiB at 65,536 hosts with its room
 * verdicts.
 */
const shapesMax = 512;
const roomsBytesMax = 128 << 20;
/** Memory for the candidate lists of large groups: 1,024 lists at 65,536 hosts. */
const groupedBytesMax = 64 << 20;
/**
 * How many shapes that were requested once are remembered: a candidate list is built at the second request of a shape.
 */
const onceSeenMax = 4096;

/** State that is valid for one layout of the fleet. */
interface Kept {
  readonly onRecord: SharedVerdicts;
  readonly onRoom: SharedVerdicts;
  readonly shapes: Map<string, Shape>;
  readonly hot: HotShapes;
  readonly desks: Desks;
}

function nothingKept(fleet: Fleet): Kept {
  const desks = new Desks(fleet.capacity);
  return {
    onRecord: new SharedVerdicts(hostPlugins, fleet, fleet.recordLog, shapesMaxOf(fleet)),
    onRoom: new SharedVerdicts(roomPlugins, fleet, fleet.log, shapesMaxOf(fleet)),
    shapes: new Map(),
    hot: new HotShapes(fleet),
    desks,
  };
}

function shapesMaxOf({ capacity }: Fleet): number {
  return Math.min(shapesMax, roomsBytesMax / (8 * capacity));
}

export class Engine {
  readonly fleet: Fleet;
  #kept: Kept;
  readonly #seenOnce = new Set<string>();
  #layout: number;
  #questions = 0;
  readonly #limits: WalkLimits;
  /** By shape and its questions about neighbours; least recently used first. */
  readonly #grouped = new Map<string, GroupedLeaders>();

  constructor(fleet: Fleet, limits: WalkLimits = walkLimits) {
    this.fleet = fleet;
    this.#limits = limits;
    this.#layout = fleet.layout;
    this.#kept = nothingKept(fleet);
  }

  /** The best host, or null when no host fits. */
  choose(request: Request): Choice | null {
    const groupRules = prepareGroupRules(groupPlugins, request, this.fleet);
    if (groupRules?.nowhere) return null;
    const shape = this.#isNew(request) ? undefined : this.#shapeOf(request);
    if (!shape) return this.#scan(request, groupRules);
    const { leaders } = shape;
    if (!groupRules) {
      const slot = leaders.best(this.fleet.length);
      return slot < 0 ? null : { slot, score: shape.of(slot), fitCount: leaders.fitCount };
    }
    const choice = this.#chooseAmong(request, groupRules, shape);
    return choice && { ...choice, neighboursAsked: true };
  }

  #chooseAmong(request: Request, groupRules: GroupRules, shape: Shape): Choice | null {
    // Large groups first: a walk that once ended without an answer is not repeated.
    const known =
      groupRules.perHost && this.#grouped.size > 0 ? this.#grouped.get(groupedKeyOf(request, groupRules)) : undefined;
    if (known?.base === shape) return this.#groupedFor(request, groupRules, shape).choose(groupRules);
    const ranked = {
      scores: shape,
      leaders: shape.leaders,
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

  /** Number of hosts that fit, without the rules about groups. Scans all hosts when the shape is new. */
  fitCount(request: Request): number {
    return this.#shapeOf(request).leaders.fitCount;
  }

  /** Whether the host fits, without the rules about groups. */
  fitsAt(request: Request, slot: Slot): boolean {
    return this.#shapeOf(request).of(slot) >= 0;
  }

  /** The refusal of a neighbour rule that refuses all hosts for one reason, if there is one. */
  nowhere(request: Request): Refusal | null {
    return prepareGroupRules(groupPlugins, request, this.fleet)?.nowhere ?? null;
  }

  /** Counts, for each host, the first rule that refuses it. Hosts that fit are not counted. */
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

  /** Whether the shape is requested for the first time; remembers it. */
  #isNew({ shapeKey }: Request): boolean {
    this.#forgetOldLayout();
    if (this.#kept.shapes.has(shapeKey) || this.#seenOnce.has(shapeKey)) return false;
    if (this.#seenOnce.size >= onceSeenMax) this.#seenOnce.clear();
    this.#seenOnce.add(shapeKey);
    return true;
  }

  #shapeOf(request: Request): Shape {
    this.#forgetOldLayout();
    this.#kept.hot.mend();
    const { shapes, hot } = this.#kept;
    let shape = shapes.get(request.shapeKey);
    if (!shape?.hot || this.fleet.trying) hot.tellUpTo();
    if (!shape) {
      if (shapes.size >= shapesMaxOf(this.fleet)) this.#forgetOldest();
      shape = this.#newShape(request);
      shapes.set(request.shapeKey, shape);
    } else if (!shape.hot || this.fleet.trying) shape.catchUp();
    hot.use(shape, ++this.#questions);
    return shape;
  }

  #newShape(request: Request): Shape {
    const { onRecord, onRoom, desks } = this.#kept;
    const parts = {
      onRecord: onRecord.of(request.termsKey, request),
      onRoom: onRoom.of(request.roomKey, request),
      desk: desks.take(),
      kept: this.#limits.leaders,
    };
    parts.onRecord.readers += 1;
    parts.onRoom.readers += 1;
    return new Shape(this.fleet, parts);
  }

  #forgetOldest(): void {
    const { shapes, hot, desks } = this.#kept;
    let oldest: [string, Shape] | undefined;
    for (const each of shapes) if (!oldest || each[1].usedAt < oldest[1].usedAt) oldest = each;
    if (!oldest) return;
    const [key, shape] = oldest;
    shapes.delete(key);
    hot.drop(shape);
    shape.onRecord.readers -= 1;
    shape.onRoom.readers -= 1;
    desks.giveBack(shape.desk);
  }

  #forgetOldLayout(): void {
    if (this.#layout === this.fleet.layout) return;
    this.#layout = this.fleet.layout;
    this.#kept = nothingKept(this.fleet);
    this.#grouped.clear();
  }

  /** A new shape: one scan over all hosts, which keeps only the verdicts on their records. */
  #scan(request: Request, groupRules: GroupRules | null): Choice | null {
    const { fleet } = this;
    const onRecord = this.#kept.onRecord.of(request.termsKey, request);
    onRecord.catchUp();
    const rules = prepareRules(roomPlugins, request, fleet);
    const best = new Best(fleet.names);
    let fitCount = 0;
    for (let slot = 0; slot < fleet.length; slot++) {
      const record = onRecord.of(slot);
      const base = record < 0 ? record : combined(record, judge(rules, slot));
      if (base < 0) continue;
      fitCount += 1;
      if (!groupRules) best.offer(slot, base);
      else {
        const score = judge(groupRules, slot);
        if (score >= 0) best.offer(slot, base + score);
      }
    }
    const choice = best.choice(fitCount);
    return choice && groupRules ? { ...choice, neighboursAsked: true } : choice;
  }
}

function groupedKeyOf({ shapeKey, groups, belonging }: Request, { given }: GroupRules): string {
  return JSON.stringify([shapeKey, groups, belonging, given]);
}
