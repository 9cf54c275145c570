// TLS to a real broker, which asks for a certificate: the configuration connects, and what is wrong with it is said with its setting.

import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger } from '../src/base/log.ts';
import { systemClock } from '../src/base/system.ts';
import { TestAuthority } from '../src/base/tls/test-authority.ts';
import { parse } from '../src/api/parse.ts';
import { publishRequest } from '../src/cli/jobs/publish-request.ts';
import { ServerConfig } from '../src/server/config.ts';
import { amqpSettingsOf } from '../src/server/intake/amqp/amqp-settings.ts';
import { brokerAt } from '../src/server/intake/amqp/broker-connection.ts';
import { startRabbitmq, type TestRabbitmq } from '../src/server/intake/amqp/test-rabbitmq.ts';
import { sound, startAmqp, serverWithImage } from '../src/server/intake/amqp/testing.ts';

let folder: string;
let broker: TestRabbitmq;
let own: TestAuthority;
let other: TestAuthority;
let client: { cert: string; key: string };
let foreign: { cert: string; key: string };
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'berth-amqp-tls-'));
  chmodSync(folder, 0o755);
  own = new TestAuthority(folder, 'own');
  other = new TestAuthority(folder, 'other');
  client = own.issue('berth', 'DNS:berth');
  foreign = other.issue('berth', 'DNS:berth');
  broker = await startRabbitmq({ ...own.issue('broker', 'IP:127.0.0.1'), ca: own.ca });
});
afterAll(async () => {
  await broker?.dispose();
  rmSync(folder, { recursive: true });
});

const settingsOf = (config: object, host = '127.0.0.1') => {
  const amqpUrl = `amqps://guest:guest@${host}:${broker.tlsPort}`;
  const settings = amqpSettingsOf(parse(ServerConfig, { amqpUrl, ...config }), undefined);
  if (!settings) throw new Error('no broker is configured');
  return settings;
};
const shown = () => ({ amqpCertificate: client.cert, amqpKey: client.key });

async function troubleWith(settings: ReturnType<typeof settingsOf>): Promise<string | undefined> {
  const link = brokerAt(settings.url, { clock: systemClock, log: silentLogger, tls: settings.tls })('test');
  await link.first;
  const { trouble } = link;
  await link.close();
  return trouble;
}

describe('a broker over TLS', () => {
  it('is verified with amqpCa and shown amqpCertificate, and takes messages', async () => {
    const settings = settingsOf({ amqpCa: own.ca, ...shown() });
    const server = await serverWithImage();
    const amqp = await startAmqp(server, settings);
    await publishRequest(sound, settings);
    expect(amqp.report()).toContainEqual(expect.objectContaining({ name: 'amqp intake', ok: true }));
    await amqp.stop();
    await server.close();
  });

  it.each([
    ['another authority', () => ({ amqpCa: other.ca, ...shown() }), 'set amqpCa (AMQP_CA)'],
    ['no authority', shown, 'set amqpCa (AMQP_CA)'],
    ['no certificate', () => ({ amqpCa: own.ca }), 'amqpCertificate (AMQP_CERTIFICATE)'],
    [
      'a certificate of another authority',
      () => ({ amqpCa: own.ca, amqpCertificate: foreign.cert, amqpKey: foreign.key }),
      'amqpCertificate (AMQP_CERTIFICATE)',
    ],
  ])('is refused with %s', async (_, config, message) => {
    expect(await troubleWith(settingsOf(config()))).toContain(message);
  });

  it('is refused when its certificate names another host', async () => {
    const settings = settingsOf({ amqpCa: own.ca, ...shown() }, 'localhost');
    expect(await troubleWith(settings)).toContain('must name the host of amqpUrl');
  });

  it.each([
    ['a file that is not there', () => ({ amqpCa: '/not/there.pem' }), 'amqpCa: cannot read /not/there.pem'],
    ['a file without a certificate', () => ({ amqpCa: client.key }), 'holds no certificate'],
    ['a certificate without its key', () => ({ amqpCertificate: client.cert }), 'go together'],
    ['the key of another certificate', () => ({ amqpCertificate: client.cert, amqpKey: foreign.key }), 'amqpKey: '],
    ['a URL without TLS', () => ({ amqpCa: own.ca, amqpUrl: 'amqp://mq' }), 'must begin with amqps:'],
  ])('is not begun with %s', (_, config, message) => {
    expect(() => settingsOf(config())).toThrow(message);
  });
});
