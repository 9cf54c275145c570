// Waiting: an instance in the queue, its line and its shape. Plain data that queue.ts keeps; nothing here changes it.

import { equalJson } from '../../base/equal-json.ts';
import { type Instance, isToBeOn } from '../../api/resources/instance.ts';
import type { Request } from '../scheduler/request.ts';
import type { Rules } from '../scheduler/engine/verdicts.ts';
import type { Limit } from './limits.ts';
import type { Rank } from './order.ts';
import type { SortedList } from './sorted-list.ts';

export interface Waiting {
  readonly key: string;
  readonly id: string;
  readonly createdAtMs: number;
  /** Since when it waits: its creation, or the failure after which it is placed again. */
  readonly sinceMs: number;
  readonly generation: number;
  readonly labels: Instance['metadata']['labels'];
  /** The limits that apply to it. */
  readonly limits: readonly Limit[];
  /** Its own shape, also for an instance of a gang. */
  readonly ownShape: string;
  readonly line: Line;
}

/** The waiting instances of one project, priority and shape. */
export interface Line {
  readonly project: string;
  readonly priority: number;
  readonly shape: Shape;
  readonly all: SortedList<Waiting>;
  readonly due: SortedList<Waiting>;
  /** When the last head left. */
  leftAtMs: number;
  /** Its place in the order of its project; null while none of its instances is due. */
  rank: Rank | null;
}

/** Instances that no rule, groups aside, can tell apart; or a gang, whose members may differ. */
export interface Shape {
  readonly key: string;
  /** For a gang: the request of the first member, with the group terms of all. */
  request: Request;
  /** The limits that apply to all of them; for a gang, each member counts on its own. */
  readonly limits: readonly Limit[];
  /** The task whose room they take over. */
  readonly task: string | undefined;
  /** By priority and project. */
  readonly lines: Map<string, Line>;
  /** The gang they belong to, whatever the shapes of its members. */
  readonly gang: string | undefined;
  rules: Rules | null;
  layout: number;
  /** Why none of them fits anywhere; valid while the fleet's change log is unchanged. */
  unfit: { readonly logEnd: number; readonly message: string } | null;
  /** How many more may be tried until room is freed. */
  triesLeft: number;
}

export function isWaiting({ metadata, spec, status }: Instance): boolean {
  return status.phase === 'Pending' && metadata.deletionRequestedAtMs === undefined && isToBeOn(spec);
}

/** Whether nothing has changed that the queue or a rule reads. */
export function isSame(known: Waiting, { metadata: { id, generation, labels } }: Instance): boolean {
  return known.id === id && known.generation === generation && equalJson(known.labels, labels);
}

export function shapeKeyOf(
  { shapeKey, groups, belonging }: Request,
  { task, limits }: Pick<Shape, 'task' | 'limits'>,
): string {
  const more = groups.length + limits.length === 0 ? '' : JSON.stringify([groups, limits]);
  return task === undefined ? `${shapeKey}${more}` : `${belonging.project}/${task} ${shapeKey}${more}`;
}

export function headSinceMs({ all, leftAtMs }: Line): number {
  return Math.max(all.first()?.sinceMs ?? 0, leftAtMs);
}

export function* allIn({ lines }: Shape): Iterable<Waiting> {
  for (const line of lines.values()) yield* line.all;
}

/** The one after `taken` in its line; else the head of the next line. */
export function nextOf(shape: Shape, taken: Waiting): Waiting | undefined {
  const behind = taken.line.all.after(taken);
  if (behind) return behind;
  let passed = false;
  for (const line of shape.lines.values()) {
    if (passed) return line.all.first();
    passed = line === taken.line;
  }
  return undefined;
}

export function* limitsOfEach(gang: Shape): Iterable<readonly Limit[]> {
  for (const { limits } of allIn(gang)) yield limits;
}

export function countsTowards(shape: Shape, word: string): boolean {
  const has = (limits: readonly Limit[]): boolean => limits.some((limit) => limit.word === word);
  if (shape.gang === undefined) return has(shape.limits);
  for (const limits of limitsOfEach(shape)) if (has(limits)) return true;
  return false;
}
