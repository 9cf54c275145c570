import { expect, it } from 'vitest';
import { parse } from '../parse.ts';
import type { Event } from '../resources/event.ts';
import { CloudEvent, cloudEventOf, matchesType } from './cloud-event.ts';

function event(subject: Event['spec']['subject'], more: Partial<Event['spec']> = {}): Event {
  const id = 'evt_01k9zq4w7v3m5n8p2r6t9x1y3z';
  return {
    kind: 'event',
    schemaVersion: 1,
    metadata: {
      id,
      name: id,
      project: 'web',
      revision: 918_273,
      generation: 1,
      labels: {},
      createdAtMs: 1_764_158_400_000,
    },
    spec: { subject, type: 'Normal', reason: 'Placed', message: 'placed on rack-7', ...more },
    status: {},
  };
}

it('is what other programs get of an event', () => {
  const subject = { kind: 'instance', id: 'inst_1', name: 'a', project: 'web' };
  const made = cloudEventOf(event(subject, { host: 'rack-7' }), 'epoch-1');
  expect(made).toEqual({
    specversion: '1.0',
    id: 'evt_01k9zq4w7v3m5n8p2r6t9x1y3z',
    source: 'urn:berth:epoch-1',
    type: 'berth.v1.instance.Placed',
    subject: 'projects/web/instances/a',
    time: '2025-11-26T12:00:00.000Z',
    datacontenttype: 'application/json',
    sequence: '918273',
    partitionkey: 'inst_1',
    data: { subject, level: 'Normal', reason: 'Placed', message: 'placed on rack-7', host: 'rack-7' },
  });
  expect(() => parse(CloudEvent, made)).not.toThrow();
});

it('is about the fleet, when its subject is in no project', () => {
  const made = cloudEventOf(event({ kind: 'host', id: 'host_1', name: 'rack-7', project: '' }), 'e');
  expect([made.subject, made.type]).toEqual(['hosts/rack-7', 'berth.v1.host.Placed']);
});

it('has attribute names as the specification wants them', () => {
  for (const name of Object.keys(CloudEvent.properties)) expect(name).toMatch(/^[a-z0-9]{1,20}$/);
});

it.each([
  ['*', 'berth.v1.host.Paused', true],
  ['berth.v1.host.*', 'berth.v1.host.Paused', true],
  ['berth.v1.host.*', 'berth.v1.hostage.Paused', false],
  ['berth.v1.*', 'berth.v1.host.Paused', true],
  ['berth.v1.host.Paused', 'berth.v1.host.Paused', true],
  ['berth.v1.host.Pause', 'berth.v1.host.Paused', false],
])('%s and %s: %s', (pattern, type, matches) => {
  expect(matchesType(pattern, type)).toBe(matches);
});
