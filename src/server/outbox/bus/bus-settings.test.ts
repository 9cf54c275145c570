// What the configuration of event buses may say, and that what is wrong is said with its field.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from '../../../api/parse.ts';
import { ServerConfig } from '../../config.ts';
import { busSettingsOf } from './bus-settings.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-bus-'));
afterAll(() => rmSync(folder, { recursive: true }));
const secret = join(folder, 'secret');
writeFileSync(secret, 'open-sesame\n');
const empty = join(folder, 'empty');
writeFileSync(empty, '');
const nats = { kind: 'nats', url: 'nats://127.0.0.1:4222' };
const settings = (...eventBus: object[]) => busSettingsOf(parse(ServerConfig, { eventBus }).eventBus);

describe('the settings of event buses', () => {
  it('have credentials from files, and defaults', () => {
    expect(settings({ ...nats, user: 'berth', passwordFile: secret })).toEqual([
      {
        ...nats,
        name: 'nats',
        place: 'BERTH_EVENTS',
        login: { user: 'berth', password: 'open-sesame' },
      },
    ]);
    expect(settings({ ...nats, name: 'b', url: 'tls://nats.example', tokenFile: secret, stream: 'S' })).toEqual([
      { kind: 'nats', url: 'tls://nats.example', name: 'b', place: 'S', token: 'open-sesame', tls: {} },
    ]);
  });

  it.each([
    ['another kind', { ...nats, kind: 'redis' }, 'kind'],
    ['credentials in the URL', { ...nats, url: 'nats://a:open-sesame@h' }, 'url'],
    ['another scheme', { ...nats, url: 'https://h' }, 'url'],
    ['a password without a user', { ...nats, passwordFile: secret }, 'eventBus[0].user'],
    ['a token beside a user', { ...nats, user: 'a', passwordFile: secret, tokenFile: secret }, 'eventBus[0].tokenFile'],
    ['a file that is missing', { ...nats, tokenFile: `${secret}.no` }, 'eventBus[0].tokenFile'],
    ['an empty file', { ...nats, user: 'a', passwordFile: empty }, 'eventBus[0].passwordFile'],
    ['an authority without TLS', { ...nats, caFile: secret }, 'eventBus[0].caFile'],
    ['an authority that is none', { ...nats, url: 'tls://h', caFile: secret }, 'eventBus[0].caFile'],
    ['a certificate without its key', { ...nats, url: 'tls://h', certificateFile: secret }, 'certificateFile'],
    ['an exchange of NATS', { ...nats, exchange: 'a' }, 'eventBus[0].exchange'],
    ['a token for AMQP', { kind: 'amqp', url: 'amqp://h', tokenFile: secret }, 'eventBus[0].tokenFile'],
    ['a URL of another kind', { ...nats, kind: 'amqp' }, 'eventBus[0].url'],
    [
      'a password for Kafka in plain text',
      { kind: 'kafka', url: 'kafka://h', user: 'a', passwordFile: secret },
      'eventBus[0].user',
    ],
    ['a stream with dots', { ...nats, stream: 'a.b' }, 'stream'],
  ])('refuse %s, with the field', (_, bus, field) => {
    const refused = (): unknown => settings(bus);
    expect(refused).toThrow(field);
    expect(refused).not.toThrow('open-sesame');
  });

  it('refuse two of one name', () => expect(() => settings(nats, nats)).toThrow('eventBus[1].name: another'));
});
