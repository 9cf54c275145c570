import { expect, it } from 'vitest';
import { newMetadata } from '../../core/operations/create.ts';
import { Cache } from '../../core/state/cache.ts';
import { keyOf } from '../../core/state/keys.ts';
import { schemaVersion } from '../../core/state/upgrade.ts';
import { testContext } from '../../core/testing.ts';
import { EventFeed } from './event-feed.ts';

const event = (id: string) => ({
  kind: 'event' as const,
  schemaVersion,
  metadata: newMetadata(id, { project: 'p', name: id, labels: {}, spec: undefined }, testContext()),
  spec: {
    subject: { kind: 'instance', id: 'a', name: 'a', project: 'p' },
    type: 'Normal' as const,
    reason: 'Booted',
    message: 'booted',
  },
  status: {},
});

it('never ends within a revision: its readers go on after it', () => {
  const cache = new Cache(() => 0);
  const commit = (revision: number, ...ids: readonly string[]): void =>
    cache.apply(
      ids.map(event).map((value) => ({ key: keyOf(value), value, revision })),
      revision,
    );
  commit(1, 'evt_1', 'evt_2', 'evt_3');
  commit(2, 'evt_4');
  const { events, more } = new EventFeed(cache).after(0, 2);
  expect([events.map(({ metadata }) => metadata.id), more]).toEqual([['evt_1', 'evt_2', 'evt_3'], true]);
});
