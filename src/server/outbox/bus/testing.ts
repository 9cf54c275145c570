// Control planes and events for tests of event buses.

import { silentLogger } from '../../../base/log.ts';
import type { Clock } from '../../../base/clock.ts';
import { seededPrng } from '../../../base/prng.ts';
import { Cache } from '../../../core/state/cache.ts';
import { defaultPolicy } from '../../../core/state/context.ts';
import { eventChange } from '../../../core/state/events.ts';
import { keys } from '../../../core/state/keys.ts';
import { testTask } from '../../../core/testing.ts';
import type { Store } from '../../../store/store.ts';
import { Committer } from '../../commit.ts';
import { type Decider, decideAndCommit } from '../../decide.ts';
import type { OpenBus } from './bus.ts';
import { EventBus } from './event-bus.ts';

export function testDecider(store: Store, clock: Clock): Decider {
  const cache = new Cache(() => clock.monotonicMs());
  const committer = new Committer({ store, cache, log: silentLogger });
  return { cache, committer, clock, prng: seededPrng(1), policy: defaultPolicy };
}

export function startBus(decider: Decider, open: OpenBus): EventBus {
  const bus = new EventBus([{ name: 'test', open }], { decider, log: silentLogger });
  bus.lead();
  return bus;
}

/** What `putEvents` gives its task. */
export const traceParent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

/** Writes one event for each reason, about the task of this name, which was created by a request that is part of a trace. */
export async function putEvents(decider: Decider, reasons: readonly string[], name = 'a'): Promise<void> {
  const task = testTask(name);
  const traced = { ...task, metadata: { ...task.metadata, traceParent } };
  for (const reason of reasons)
    await decideAndCommit(decider, (_, ctx) => ({
      plan: { changes: [eventChange(traced, { reason, message: 'x' }, ctx)] },
    }));
}

export async function deleteEvents(decider: Decider): Promise<void> {
  const { revision } = await decideAndCommit(decider, (snapshot) => ({
    plan: {
      changes: [...snapshot.list('event')].map(({ key, revision }) => ({ key, ifRevision: revision, value: null })),
    },
  }));
  decider.cache.revision = revision; // as the store's events would say
}

/** The position that is written down. */
export function positionIn({ cache }: Decider): number | undefined {
  return cache.committed('busProgress', keys.busProgress('test'))?.value.revision;
}
