// What only a whole record can tell: watches against the log, fail-overs, restarts without a cause, answers that had to be others.

import type { FakeGuest } from '../../src/agent/drivers/fake/world.ts';
import { type Commit, type CommittedState, createHistory } from '../../src/sim/history.ts';
import type { WatchEvent } from '../../src/store/store.ts';
import { createWatchCheck } from '../../src/sim/checkers/watch.ts';
import { conditionOf } from '../../src/core/state/conditions.ts';
import type { FailOver, FaultInterval } from './faults.ts';
import type { Violation } from './record.ts';
import type { WatchRecord } from './workload.ts';

/** Every watch saw every change after its beginning, once and in order, up to its last bookmark. */
export function judgeWatches(watches: readonly WatchRecord[], commits: readonly Commit[]): Violation[] {
  const found: Violation[] = [];
  for (const { by, server, after, lines } of watches) {
    const check = createWatchCheck(commits, after);
    for (const line of lines) {
      const fault = check(line);
      if (fault === undefined) continue;
      found.push({ invariant: 6, message: `${by} at ${server} from revision ${after}: ${fault}` });
      break;
    }
  }
  return found;
}

/** A log as commits, read from its beginning. */
export function commitsOf(log: readonly WatchEvent[]): readonly Commit[] {
  const history = createHistory();
  for (let i = 0; i < log.length; ) {
    const revision = log[i]?.revision ?? 0;
    let end = i;
    while (log[end]?.revision === revision) end++;
    history.record({ ok: true, revision }, log.slice(i, end));
    i = end;
  }
  return history.commits;
}

/** What was followed must be what is there at the end, to the last byte. */
export function differenceOf(followed: readonly Commit[], found: readonly Commit[]): string | undefined {
  if (followed.length !== found.length)
    return `${followed.length} revisions were followed, ${found.length} are in the log`;
  for (const [i, commit] of followed.entries())
    if (JSON.stringify(commit) !== JSON.stringify(found[i]))
      return `revision ${commit.revision} is not in the log as it was when it was followed`;
  return undefined;
}

/** With the default lease; `takesMsMax` is what the product promises. */
const takesMsMax = 10_000;

/** So long before, a fault of a control plane may still be felt: it starts, or opens its connections again. */
const recoveryMs = 8_000;

/** Those in which the store was there, and some other control plane was well all the time. */
export function cleanFailOvers(
  failOvers: readonly FailOver[],
  faults: readonly FaultInterval[],
  planes: readonly string[],
): readonly FailOver[] {
  return failOvers.filter(({ leader, atMs, tookMs = takesMsMax }) => {
    const untilMs = atMs + tookMs;
    const disturbed = (target: string): boolean =>
      faults.some(
        ({ targets, fromMs, toMs }) => targets.includes(target) && fromMs < untilMs && toMs > atMs - recoveryMs,
      );
    if (disturbed('store') || disturbed('everything')) return false;
    return planes.some((plane) => plane !== leader && !disturbed(plane));
  });
}

export function judgeFailOvers(failOvers: readonly FailOver[]): Violation[] {
  return failOvers.flatMap(({ how, term, tookMs }) =>
    tookMs === undefined || tookMs > takesMsMax
      ? [
          {
            invariant: 0,
            message: `after ${how} of the leader of term ${term} another led ${tookMs === undefined ? 'never' : `only after ${tookMs} ms`}`,
          },
        ]
      : [],
  );
}

/** Guests do not die by themselves here: only the loss of its host is a reason to start an instance again. */
export function restartFault({ events }: Commit): string | undefined {
  for (const { before, after } of events) {
    if (before?.kind !== 'instance' || after?.kind !== 'instance' || before.metadata.id !== after.metadata.id) continue;
    if (after.status.restartCount <= before.status.restartCount) continue;
    const running = conditionOf(before.status.conditions, 'Running');
    if (running?.reason === 'HostLost') continue;
    return `instance ${after.metadata.name} was started anew after ${running?.reason ?? 'nothing'}: ${running?.message ?? ''}`;
  }
  return undefined;
}

export interface LostHost {
  readonly host: string;
  readonly atMs: number;
}

/** A host is lost when a fault kept it silent, and never for what happened to control planes or store. */
export function judgeLostHosts(
  lost: readonly LostHost[],
  faults: readonly FaultInterval[],
  offlineAfterMs: number,
): Violation[] {
  return lost.flatMap(({ host, atMs }) => {
    const caused = faults.some(
      ({ targets, fromMs, toMs }) =>
        (targets.includes(host) || targets.includes('everything')) && fromMs < atMs && toMs > atMs - 2 * offlineAfterMs,
    );
    return caused ? [] : [{ invariant: 9, message: `host ${host} was called lost though nothing had happened to it` }];
  });
}

/** A second boot of one life needs a stop and a start that were asked for. */
export function judgeBoots(guests: readonly FakeGuest[], state: CommittedState): Violation[] {
  const generations = new Map<string, number>();
  for (const { metadata } of state.list('instance')) generations.set(metadata.id, metadata.generation);
  return guests.flatMap(({ instanceId, boots, host }) => {
    const generation = generations.get(instanceId) ?? Number.POSITIVE_INFINITY;
    return generation >= 2 * boots - 1
      ? []
      : [
          {
            invariant: 9,
            message: `${instanceId} on ${host} booted ${boots} times; its owner changed it ${generation - 1} times`,
          },
        ];
  });
}
