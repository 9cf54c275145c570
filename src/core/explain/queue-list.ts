// The queue as users read it: the order, and why each instance waits.

import type { QueueItem, QueueList } from '../../api/queue.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Job } from '../../api/resources/job.ts';
import { gangOutlook } from './explain-gang.ts';
import { conditionOf } from '../state/conditions.ts';
import { jobsOf } from '../state/jobs.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { gangKeyOf, gangsOf } from '../queue/gangs.ts';
import { queueOf } from '../queue/queue.ts';
import type { Waiting } from '../queue/waiting.ts';
import { sharesOf } from '../queue/shares.ts';

export function listQueue(
  snapshot: Snapshot,
  {
    nowMs,
    limit,
    project,
    knows = () => true,
    names = () => true,
    startOf = () => undefined,
  }: {
    readonly nowMs: number;
    readonly limit: number;
    readonly project?: string | undefined;
    /** Whether the caller may read instances of a project. Positions count those of all. */
    readonly knows?: (project: string) => boolean;
    /** Whether the caller may know their names, and why they wait; else there are ids. */
    readonly names?: (project: string) => boolean;
    /** When a job that waits may start, in milliseconds since 1970. */
    readonly startOf?: (job: Job) => number | undefined;
  },
): QueueList {
  const queue = queueOf(snapshot);
  const items: QueueItem[] = [];
  const projects = new Set<string>();
  let waitingCount = 0;
  const gangs = new GangAnswers(snapshot);
  for (const [i, waiting] of queue.inOrder(nowMs).entries()) {
    const { key, line } = waiting;
    const { project: owner } = line;
    if ((project !== undefined && owner !== project) || !knows(owner)) continue;
    waitingCount++;
    projects.add(owner);
    if (items.length >= limit) continue;
    const item = itemOf(snapshot, waiting, { position: i + 1, nowMs, gangs, startOf });
    if (item) items.push(names(owner) ? item : withoutName(snapshot, key, item));
  }
  return {
    waiting: waitingCount,
    items,
    projects: [...projects].sort().map((each) => ({
      project: each,
      weight: snapshot.get('project', keys.project(each))?.value.spec.weight ?? 1,
      share: sharesOf(snapshot).of(each),
    })),
  };
}

interface ItemParts {
  readonly position: number;
  readonly nowMs: number;
  readonly gangs: GangAnswers;
  readonly startOf: (job: Job) => number | undefined;
}

function itemOf(
  snapshot: Snapshot,
  { key, sinceMs, line }: Waiting,
  { position, nowMs, gangs, startOf }: ItemParts,
): QueueItem | undefined {
  const instance = snapshot.get('instance', key)?.value;
  if (!instance) return undefined;
  const { metadata, spec, status } = instance;
  const scheduled = conditionOf(status.conditions, 'Scheduled');
  const job = snapshot.get('job', jobsOf(snapshot).ofInstance(key) ?? '')?.value;
  const expectedStartMs = job && startOf(job);
  return {
    position,
    instance: metadata.name,
    project: metadata.project,
    priority: line.priority,
    waitingMs: Math.max(0, nowMs - sinceMs),
    reason: scheduled?.reason ?? '',
    message: gangs.today(instance) ?? scheduled?.message ?? '',
    ...(spec.gang === undefined ? {} : { gang: spec.gang.name }),
    ...(expectedStartMs === undefined ? {} : { expectedStartMs }),
    ...(status.nomination === undefined ? {} : { nominatedHost: status.nomination.host }),
  };
}

function withoutName(snapshot: Snapshot, key: string, { gang: _gang, ...item }: QueueItem): QueueItem {
  return { ...item, instance: snapshot.get('instance', key)?.value.metadata.id ?? '', message: '' };
}

/** Number of gang members evaluated for one list: about 10 ms. */
const membersAskedMax = 256;

/**
 * How many members of each gang fit at once now. Their status may be an hour old: it is not rewritten whenever room for
 * one more of them appears and disappears.
 */
class GangAnswers {
  readonly #snapshot: Snapshot;
  readonly #known = new Map<string, string | undefined>();
  #left = membersAskedMax;

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
  }

  today(instance: Instance): string | undefined {
    const gang = gangKeyOf(instance);
    if (gang === undefined || conditionOf(instance.status.conditions, 'Scheduled')?.reason !== 'Unschedulable') return;
    if (!this.#known.has(gang)) this.#known.set(gang, this.#ask(instance, gang));
    return this.#known.get(gang);
  }

  #ask(instance: Instance, gang: string): string | undefined {
    const members = gangsOf(this.#snapshot).living(gang).length;
    if (members > this.#left) return undefined;
    this.#left -= members;
    const outlook = gangOutlook(this.#snapshot, instance);
    return outlook?.complete && !outlook.answer.placed ? outlook.answer.message : undefined;
  }
}
