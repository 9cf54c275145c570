import { describe, expect, it } from 'vitest';
import { cloudEventOf } from '../../../api/news/cloud-event.ts';
import type { Event } from '../../../api/resources/event.ts';
import type { Webhook } from '../../../api/resources/webhook.ts';
import type { WebhookProgress } from '../../../core/state/records.ts';
import { testCache, testContext } from '../../../core/testing.ts';
import { newMetadata } from '../../../core/operations/create.ts';
import { schemaVersion } from '../../../core/state/upgrade.ts';
import { testHistory } from '../../test-history.ts';
import type { Delivery } from '../../world/false-receivers.ts';
import type { Checker } from '../checker.ts';
import { deliveriesChecker } from './deliveries.ts';

const metadataOf = (id: string, name: string) =>
  newMetadata(id, { project: 'p', name, labels: {}, spec: undefined }, testContext());

const hook: Webhook = {
  kind: 'webhook',
  schemaVersion,
  metadata: metadataOf('hook_1', 'news'),
  spec: {
    description: '',
    url: 'https://news.example/',
    events: ['berth.v1.instance.*'],
    secrets: [{ secret: 's', key: 'k' }],
    allProjects: false,
    paused: false,
  },
  status: { asked: [] },
};

function event(id: string, subject = 'a', kind = 'instance'): Event {
  return {
    kind: 'event',
    schemaVersion,
    metadata: metadataOf(id, id),
    spec: {
      subject: { kind, id: subject, name: subject, project: 'p' },
      type: 'Normal',
      reason: 'Booted',
      message: id,
    },
    status: {},
  };
}

/** The message about an event of this revision. */
function message(of: Event, revision: number, changes: Partial<Delivery> = {}): Delivery {
  const body = JSON.stringify(cloudEventOf({ ...of, metadata: { ...of.metadata, revision } }, 'fleet'));
  return { receiver: 'news.example', id: of.metadata.id, body, isSigned: true, status: 200, ...changes };
}

function progress(changes: Partial<WebhookProgress>): WebhookProgress {
  return {
    ...{ kind: 'webhookProgress', project: 'p', name: 'news', webhookId: 'hook_1' },
    ...{ revision: 0, asked: 0, pending: [], delivered: [], ...changes },
  };
}

const pendingOf = (of: Event, revision: number, nextAtMs: number) => ({
  event: cloudEventOf({ ...of, metadata: { ...of.metadata, revision } }, 'fleet'),
  attempts: 1,
  nextAtMs,
});

/** The webhook is made by revision 1, the events `evt_2` and `evt_3` of one subject and `evt_4` of another by the next ones. */
function scene() {
  let checker: Checker | undefined;
  const history = testHistory((facts) => {
    const servers = () => [{ name: 'server-1', cache: testCache([]), wallMs: () => 5 }];
    checker = deliveriesChecker({ ...facts, servers, receivers: { takes: (_, subject) => subject !== 'refused' } });
    return checker;
  });
  const [second, third, fourth] = [event('evt_2'), event('evt_3'), event('evt_4', 'b')] as const;
  for (const record of [hook, second, third, fourth]) history.commit(record);
  return { ...history, second, third, fourth, get: (delivery: Delivery) => checker?.onDelivery?.(delivery) };
}

describe('what arrives', () => {
  it('may come twice, and in any order of subjects', () => {
    const { get, second, third, fourth } = scene();
    const all = [message(fourth, 4), message(second, 2), message(third, 3), message(second, 2)];
    expect(all.map(get)).toEqual([undefined, undefined, undefined, undefined]);
  });

  it.each<[string, Event, number, Partial<Delivery>, RegExp]>([
    ['an event of no commit', event('evt_9'), 9, {}, /no commit made/],
    ['another revision', event('evt_2'), 3, {}, /its sequence is 3/],
    ['another id than its body', event('evt_2'), 2, { id: 'evt_3' }, /its body is evt_2/],
    ['no signature', event('evt_2'), 2, { isSigned: false }, /signature/],
    ['another receiver', event('evt_2'), 2, { receiver: 'other.example' }, /of a webhook that no commit made/],
  ])('%s is found', (_, of, revision, changes, fault) => {
    expect(scene().get(message(of, revision, changes))).toMatch(fault);
  });

  it('may not come before an earlier one of its subject', () => {
    const { get, second, third } = scene();
    get(message(third, 3));
    expect(get(message(second, 2))).toMatch(/after one of 3 of the same subject/);
  });

  it('may come at any time when it was asked for again', () => {
    const { get, commit, second, third } = scene();
    commit({ ...hook, status: { asked: [{ number: 1, event: 'evt_3' }] } });
    expect([get(message(third, 3)), get(message(second, 2))]).toEqual([undefined, undefined]);
  });

  it('has one body', () => {
    const { get, second } = scene();
    get(message(second, 2));
    expect(get(message(second, 2, { body: '{}' }))).toMatch(/it was .* and is {}/);
  });

  it('is of a kind that the webhook asks for', () => {
    const { get, commit } = scene();
    const other = event('evt_5', 'c', 'host');
    commit(other);
    expect(get(message(other, 5))).toMatch(/does not ask for/);
  });
});

describe('what is written down', () => {
  it('may not be ahead of what arrived', () => {
    expect(scene().commit(progress({ revision: 2 }))).toMatch(/event evt_2 of 2 is neither taken nor pending/);
  });

  it('may have what is pending behind it', () => {
    const { commit, get, second, third } = scene();
    get(message(third, 3, { status: 500 }));
    expect(
      commit(progress({ revision: 3, pending: [pendingOf(second, 2, 9), pendingOf(third, 3, 0)] })),
    ).toBeUndefined();
  });

  it('calls nothing delivered that was not taken', () => {
    const { commit, get, second } = scene();
    get(message(second, 2, { status: 500 }));
    const delivered = [
      { event: 'evt_2', type: 't', subject: 's', state: 'Delivered' as const, attempts: 1, lastAtMs: 1, status: 200 },
    ];
    expect(commit(progress({ delivered }))).toMatch(/never took it/);
  });
});

describe('at rest', () => {
  it('every event has come, and is written down', () => {
    const { unrest, commit, get, second, third, fourth } = scene();
    expect(unrest()).toHaveLength(3);
    for (const delivery of [message(second, 2), message(third, 3), message(fourth, 4)]) get(delivery);
    expect(unrest()).toEqual([expect.stringContaining('stays at 0, and its receiver has taken an event of 4')]);
    commit(progress({ revision: 4 }));
    expect(unrest()).toEqual([]);
  });

  it('what is tried again later holds back its subject alone', () => {
    const { unrest, commit, second, third } = scene();
    commit(progress({ revision: 3, pending: [pendingOf(second, 2, 9), pendingOf(third, 3, 0)] }));
    expect(unrest()).toEqual([expect.stringContaining('evt_4')]);
  });

  it('nothing more is asked of one that waits for as many as it may', () => {
    const { unrest, commit, get, second, third } = scene();
    get(message(third, 3));
    const full = (nextAtMs: number) =>
      commit(progress({ revision: 2, pending: Array.from({ length: 200 }, () => pendingOf(second, 2, nextAtMs)) }));
    full(9);
    expect(unrest()).toEqual([]);
    full(0);
    expect(unrest()).not.toEqual([]);
  });

  it.each<[string, Partial<Webhook>]>([
    ['paused', { spec: { ...hook.spec, paused: true } }],
    ['disabled', { status: { asked: [], disabled: { atMs: 1, reason: 'gone' } } }],
  ])('nothing is asked of one that is %s', (_, changes) => {
    const { unrest, commit } = scene();
    commit({ ...hook, ...changes });
    expect(unrest()).toEqual([]);
  });

  it('nor what its receiver never takes', () => {
    const { unrest, commit } = scene();
    commit(event('evt_5', 'refused'));
    expect(unrest()).toHaveLength(3);
  });
});
