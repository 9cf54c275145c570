// The queue as people read it: who is first, and why each waits.

import type { QueueItem, QueueList } from '../../api/queue.ts';
import { conditionOf } from '../state/conditions.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { queueOf, type Waiting } from './queue.ts';
import { sharesOf } from './shares.ts';

export function listQueue(
  snapshot: Snapshot,
  { nowMs, limit, project }: { readonly nowMs: number; readonly limit: number; readonly project?: string | undefined },
): QueueList {
  const queue = queueOf(snapshot);
  const items: QueueItem[] = [];
  const projects = new Set<string>();
  for (const [i, waiting] of queue.inOrder(nowMs).entries()) {
    const { project: owner } = waiting.line;
    projects.add(owner);
    if (items.length >= limit || (project !== undefined && owner !== project)) continue;
    const item = itemOf(snapshot, waiting, { position: i + 1, nowMs });
    if (item) items.push(item);
  }
  return {
    waiting: queue.length,
    items,
    projects: [...projects].sort().map((each) => ({
      project: each,
      weight: snapshot.get('project', keys.project(each))?.value.spec.weight ?? 1,
      share: sharesOf(snapshot).of(each),
    })),
  };
}

function itemOf(
  snapshot: Snapshot,
  { key, sinceMs, line }: Waiting,
  { position, nowMs }: { readonly position: number; readonly nowMs: number },
): QueueItem | undefined {
  const instance = snapshot.get('instance', key)?.value;
  if (!instance) return undefined;
  const { metadata, spec, status } = instance;
  const scheduled = conditionOf(status.conditions, 'Scheduled');
  return {
    position,
    instance: metadata.name,
    project: metadata.project,
    priority: line.priority,
    waitingMs: Math.max(0, nowMs - sinceMs),
    reason: scheduled?.reason ?? '',
    message: scheduled?.message ?? '',
    ...(spec.gang === undefined ? {} : { gang: spec.gang.name }),
    ...(status.nomination === undefined ? {} : { nominatedHost: status.nomination.host }),
  };
}
