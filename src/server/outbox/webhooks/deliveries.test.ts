// The deliveries of one webhook as a state: order, attempts, and what is written down.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CloudEvent } from '../../../api/news/cloud-event.ts';
import { Deliveries, type Due } from './deliveries.ts';

const fresh = { pending: [], delivered: [], revision: 0, asked: 0 };

function event(revision: number, subject = 'a'): CloudEvent {
  const of = { kind: 'instance', id: subject, name: subject, project: 'p' };
  return {
    specversion: '1.0',
    id: `evt_${revision}`,
    source: 'urn:berth:e',
    type: 'berth.v1.instance.Booted',
    subject: `projects/p/instances/${subject}`,
    time: '2026-11-26T12:00:00.000Z',
    datacontenttype: 'application/json',
    sequence: String(revision),
    partitionkey: subject,
    data: { subject: of, level: 'Normal', reason: 'Booted', message: 'booted' },
  };
}

const fail = { error: 'the receiver answered 500', status: 500 };
const taken = (deliveries: Deliveries, nowMs = 0): Due => {
  const due = deliveries.take(nowMs);
  if (!due) throw new Error('nothing is due');
  return due;
};

describe('order', () => {
  it('keeps two requests under way, never two of one subject', () => {
    const deliveries = new Deliveries(fresh);
    deliveries.read([event(1, 'a'), event(2, 'a'), event(3, 'b'), event(4, 'c')], 4);
    const [first, second] = [taken(deliveries), taken(deliveries)];
    expect([first.event.id, second.event.id, deliveries.take(0)]).toEqual(['evt_1', 'evt_3', undefined]);
    deliveries.delivered(first, { status: 200 }, 0);
    expect(taken(deliveries).event.id).toBe('evt_2');
  });

  it('holds back what is behind a failure of its subject, and nothing else', () => {
    const deliveries = new Deliveries(fresh);
    deliveries.read([event(1, 'a'), event(2, 'a'), event(3, 'b')], 3);
    deliveries.failed(taken(deliveries), fail, { nowMs: 0, delayMs: 5_000 });
    expect(taken(deliveries).event.id).toBe('evt_3');
    expect(deliveries.take(4_999)).toBeUndefined();
    expect(deliveries.nextAtMs(0)).toBe(5_000);
    const again = taken(deliveries, 5_000);
    expect([again.event.id, again.attempts]).toEqual(['evt_1', 1]);
    deliveries.delivered(again, { status: 204 }, 5_000);
    expect(taken(deliveries, 5_000).event.id).toBe('evt_2');
  });

  it('waits no longer because the clock was set back', () => {
    const deliveries = new Deliveries(fresh);
    deliveries.read([event(1)], 1);
    deliveries.failed(taken(deliveries), fail, { nowMs: 86_400_000, delayMs: 5_000 });
    expect(deliveries.take(86_404_999)).toBeUndefined();
    expect(deliveries.nextAtMs(1_000)).toBe(1_000);
    expect(taken(deliveries, 1_000).event.id).toBe('evt_1');
  });

  it('goes on behind what is parked', () => {
    const deliveries = new Deliveries(fresh);
    deliveries.read([event(1, 'a'), event(2, 'a')], 2);
    deliveries.failed(taken(deliveries), fail, { nowMs: 0, delayMs: undefined });
    expect(taken(deliveries).event.id).toBe('evt_2');
    expect(deliveries.progress().pending[0]).toMatchObject({ event: { id: 'evt_1' }, attempts: 1 });
  });

  it('sends a parked one again when that is asked for', () => {
    const deliveries = new Deliveries(fresh);
    deliveries.read([event(1)], 1);
    deliveries.failed(taken(deliveries), fail, { nowMs: 0, delayMs: undefined });
    deliveries.again(1, 'evt_1', undefined);
    expect([taken(deliveries).event.id, deliveries.progress().asked]).toEqual(['evt_1', 1]);
  });

  it('stops reading when too many wait behind one', () => {
    const deliveries = new Deliveries(fresh);
    deliveries.read(
      Array.from({ length: 500 }, (_, i) => event(i + 1)),
      500,
    );
    deliveries.failed(taken(deliveries), fail, { nowMs: 0, delayMs: 5_000 });
    expect(deliveries.take(0)).toBeUndefined();
    expect(deliveries.progress().pending.length).toBeLessThanOrEqual(200);
    expect(deliveries.queued).toBeGreaterThan(0);
  });
});

it('loses nothing and keeps the order of each subject, whatever fails and whenever it is taken over', () => {
  const step = fc.constantFrom('take', 'deliver', 'fail', 'crash', 'pass' as const);
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 20 }),
      fc.array(step, { maxLength: 80 }),
      (subjects, steps) => {
        const events = subjects.map((subject, i) => event(i + 1, subject));
        const last = events.length;
        const readFrom = (after: number) => events.filter(({ sequence }) => Number(sequence) > after);
        let deliveries = new Deliveries(fresh);
        deliveries.read(events, last);
        let nowMs = 0;
        let open: Due[] = [];
        const done: CloudEvent[] = [];
        const act = (what: string): void => {
          const [due] = open;
          if (what === 'take') {
            const taking = deliveries.take(nowMs);
            if (taking) open.push(taking);
          } else if (what === 'pass') nowMs += 10;
          else if (what === 'crash') {
            const progress = deliveries.progress();
            deliveries = new Deliveries(structuredClone(progress));
            deliveries.read(readFrom(progress.revision), last);
            open = [];
          } else if (due) {
            open.shift();
            if (what === 'deliver') {
              deliveries.delivered(due, { status: 200 }, nowMs);
              done.push(due.event);
            } else deliveries.failed(due, fail, { nowMs, delayMs: 10 });
          }
        };
        for (const what of steps) act(what);
        for (let i = 0; i < 200; i++) for (const what of ['take', 'deliver', 'pass']) act(what);
        expect(new Set(done.map(({ id }) => id))).toEqual(new Set(events.map(({ id }) => id)));
        for (const subject of ['a', 'b', 'c']) {
          const firsts = [...new Set(done.filter(({ partitionkey }) => partitionkey === subject).map(({ id }) => id))];
          expect(firsts).toEqual(events.filter(({ partitionkey }) => partitionkey === subject).map(({ id }) => id));
        }
      },
    ),
  );
});
