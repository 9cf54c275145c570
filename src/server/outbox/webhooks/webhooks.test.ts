// All webhooks in one process with a false receiver: what they miss while events are deleted, and what is measured.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CloudEvent } from '../../../api/news/cloud-event.ts';
import { parse } from '../../../api/parse.ts';
import { WebhookSpec } from '../../../api/resources/webhook.ts';
import { silentLogger } from '../../../base/log.ts';
import { createManualClock, type ManualClock } from '../../../base/manual-clock.ts';
import { eventChange } from '../../../core/state/events.ts';
import { keys } from '../../../core/state/keys.ts';
import { testTask } from '../../../core/testing.ts';
import { createMemoryStore } from '../../../store/memory/memory-store.ts';
import { type Decider, decideAndCommit } from '../../decide.ts';
import { deleteEvents, putEvents, testDecider } from '../bus/testing.ts';
import type { PostCall, Posted } from './post.ts';
import { Webhooks } from './webhooks.ts';

const day = 86_400_000;
let clock: ManualClock;
let decider: Decider;
let webhooks: Webhooks;
let taken: CloudEvent[];
let traces: (string | undefined)[];
let answer: Posted;

const start = (): void => {
  const post = ({ body, headers }: Pick<PostCall, 'body' | 'headers'>): Promise<Posted> => {
    traces.push(headers['traceparent']);
    if (answer.error === undefined) taken.push(JSON.parse(body) as CloudEvent); // it is what the sender wrote
    return Promise.resolve(answer);
  };
  webhooks = new Webhooks({ decider, post, log: silentLogger, version: '0' });
  webhooks.lead();
};
const restart = async (): Promise<void> => {
  await webhooks.stop();
  start();
};
const reasons = (): readonly string[] => taken.map(({ data }) => data.reason);

async function setWebhook(more: object = {}): Promise<void> {
  await decideAndCommit(decider, (snapshot) => {
    const key = keys.webhook('default', 'a');
    const known = snapshot.get('webhook', key);
    const spec = parse(WebhookSpec, {
      ...{ url: 'https://receiver.example/', secrets: [{ secret: 'hooks', key: 'current' }], allProjects: true },
      ...more,
    });
    const metadata = { ...testTask('a').metadata, createdAtMs: clock.nowMs() };
    const value = { kind: 'webhook' as const, schemaVersion: 1, metadata, spec, status: { asked: [] } };
    return { plan: { changes: [{ key, ifRevision: known?.revision ?? 0, value }] } };
  });
}

beforeEach(async () => {
  clock = createManualClock();
  decider = testDecider(createMemoryStore(), clock);
  [taken, traces, answer] = [[], [], { status: 204 }];
  const values = { current: `whsec_${Buffer.alloc(32, 7).toString('base64')}` };
  const secret = { kind: 'secretValues' as const, project: 'default', name: 'hooks', secretId: 'sec_1', values };
  await decideAndCommit(decider, () => ({
    plan: { changes: [{ key: keys.secretValues('default', 'hooks'), ifRevision: 0, value: secret }] },
  }));
  await setWebhook();
  start();
});
afterEach(() => webhooks.stop());

describe('a webhook', () => {
  it('gets the trace of the request that created the subject', async () => {
    const traceParent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const task = testTask('a');
    const traced = { ...task, metadata: { ...task.metadata, traceParent } };
    const put = (subject: typeof task, reason: string) =>
      decideAndCommit(decider, (_snapshot, ctx) => ({
        plan: { changes: [eventChange(subject, { reason, message: reason }, ctx)] },
      }));
    await put(task, 'A');
    await expect.poll(reasons).toEqual(['A']);
    await put(traced, 'B');
    await expect.poll(reasons).toEqual(['A', 'B']);
    expect(traces).toEqual([undefined, traceParent]);
    expect(taken.map(({ traceparent }) => traceparent)).toEqual([undefined, traceParent]);
  });

  it('gets one gap event when events were deleted while it was paused', async () => {
    await putEvents(decider, ['A']);
    await expect.poll(reasons).toEqual(['A']);
    await setWebhook({ paused: true });
    await putEvents(decider, ['B']);
    await deleteEvents(decider);
    await putEvents(decider, ['C']);
    await setWebhook();
    await expect.poll(reasons).toEqual(['A', 'Gap', 'C']);
    await putEvents(decider, ['D']);
    await expect.poll(reasons).toEqual(['A', 'Gap', 'C', 'D']);
  });

  it('gets a gap event when there was no leader for longer than events are kept', async () => {
    await putEvents(decider, ['A']);
    await expect.poll(reasons).toEqual(['A']);
    await webhooks.stop();
    await putEvents(decider, ['B']);
    await deleteEvents(decider);
    clock.advance(day);
    await putEvents(decider, ['C']);
    answer = { error: 'the receiver answered 500', status: 500 };
    start();
    await expect.poll(() => webhooks.webhooks().outcomes).toMatchObject({ failed: 2 });
    answer = { status: 204 };
    await restart(); // the gap is written down
    clock.advance(10_000);
    await expect.poll(() => [...reasons()].sort()).toEqual(['A', 'C', 'Gap']);
    expect(taken.find(({ data }) => data.reason === 'Gap')).toMatchObject({ type: 'berth.v1.fleet.Gap' });
  });

  it('gets none after a short absence, nor after a long one in which nothing was deleted', async () => {
    await putEvents(decider, ['A']);
    await expect.poll(reasons).toEqual(['A']);
    await restart();
    await putEvents(decider, ['B']);
    await expect.poll(reasons).toEqual(['A', 'B']);
    await webhooks.stop();
    clock.advance(3 * day);
    await putEvents(decider, ['C']);
    start();
    await expect.poll(reasons).toEqual(['A', 'B', 'C']);
  });

  it('that answers 500 for an hour gets everything afterwards, in order', async () => {
    answer = { error: 'the receiver answered 500', status: 500 };
    await putEvents(decider, ['A', 'B', 'C']);
    for (let minute = 0; minute < 60; minute++) {
      clock.advance(60_000);
      await expect.poll(() => webhooks.webhooks().backlogs[0]?.waiting).toBe(3);
    }
    answer = { status: 204 };
    clock.advance(3 * 3_600_000);
    await expect.poll(reasons).toEqual(['A', 'B', 'C']);
    const { outcomes } = webhooks.webhooks();
    expect([outcomes.delivered, outcomes.parked]).toEqual([3, 0]);
    expect(outcomes.failed).toBeGreaterThanOrEqual(3);
    expect(outcomes.failed).toBeLessThanOrEqual(5);
  });

  it('is disabled after days of failures, not because the clock jumped ahead', async () => {
    answer = { error: 'the receiver answered 500', status: 500 };
    const disabled = () => decider.cache.committed('webhook', keys.webhook('default', 'a'))?.value.status.disabled;
    await putEvents(decider, ['A']);
    await expect.poll(() => webhooks.webhooks().outcomes.failed).toBe(1);
    clock.advance(6 * day);
    await expect.poll(() => webhooks.webhooks().outcomes.failed).toBe(2);
    expect(disabled()).toBeUndefined();
    for (let events = 0; events < 10; events++) await putEvents(decider, ['B'], `b${events}`);
    await expect.poll(() => disabled()?.reason).toContain('every attempt has failed for 5 days');
  });

  it('writes its progress over that of the sender before it, which wrote late', async () => {
    const before = webhooks;
    start();
    await putEvents(decider, ['A']);
    await expect.poll(reasons).toEqual(['A', 'A']);
    const progress = () => decider.cache.committed('webhookProgress', keys.webhookProgress('default', 'a'))?.value;
    clock.advance(1_000);
    await expect.poll(progress).toBeDefined();
    await before.stop();
    await putEvents(decider, ['B']);
    await expect.poll(reasons).toEqual(['A', 'A', 'B']);
    const revisions = [...decider.cache.listCommitted('event')].map((entry) => entry.revision);
    await expect
      .poll(() => {
        clock.advance(1_000);
        return progress()?.revision;
      })
      .toBeGreaterThanOrEqual(Math.max(...revisions));
  });

  it('is measured', async () => {
    await putEvents(decider, ['A']);
    await expect.poll(reasons).toEqual(['A']);
    answer = { error: 'no answer within 20 s' };
    await putEvents(decider, ['B', 'C']);
    await expect.poll(() => webhooks.webhooks().outcomes).toEqual({ delivered: 1, failed: 1, parked: 0 });
    clock.advance(2_000);
    await expect
      .poll(() => webhooks.webhooks().backlogs)
      .toEqual([{ webhook: 'default/a', waiting: 2, parked: 0, unread: 0, ageMs: 2_000 }]);
  });
});
