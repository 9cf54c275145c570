import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ServerConfig } from '../server/config.ts';
import { amqpSettingsOf } from '../server/intake/amqp/amqp-settings.ts';
import { parse } from '../api/parse.ts';
import { checkedIntakeFlags, IntakeConfig, intakeFlagsOf, intakeVariables, whatConfigNames } from './intake-options.ts';
import { processConfig } from './process-config.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-intake-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function file(name: string, text: string): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, text);
  return path;
}

describe('the file of --config', () => {
  it.each([
    ['an image map', 'default_label: tiny\nimages: {}\n', true],
    ['a part of an image map', 'aliases: {}\n', true],
    ['a configuration', 'amqpQueue: q\n', false],
    ['an image map with a key more', 'images: {}\nlisten: 127.0.0.1:1\n', false],
    ['nothing', '', false],
    ['a list', '[images]\n', false],
  ])('is %s', async (name, text, map) => {
    const path = await file(`${name}.yaml`, text);
    expect(await whatConfigNames(path, { imageMap: undefined })).toEqual(
      map ? { file: undefined, imageMap: path } : { file: path, imageMap: undefined },
    );
  });

  it('is not an image map beside another', async () => {
    const path = await file('map.yaml', 'images: {}\n');
    await expect(whatConfigNames(path, { imageMap: 'other.yaml' })).rejects.toThrow('another one is given: other.yaml');
  });
});

describe('the settings of the broker', () => {
  const read = async (environment: Record<string, string>, flags = {}) =>
    processConfig({ environment }, IntakeConfig, {
      file: undefined,
      flags: intakeFlagsOf(checkedIntakeFlags(flags)),
      prefix: 'BERTH_DEV_',
      variables: intakeVariables('BERTH_DEV_'),
    });

  it('come from plain variables, their own, and flags', async () => {
    const environment = {
      AMQP_URL: 'amqp://u:p@mq/ci',
      AMQP_QUEUE: 'plain',
      BERTH_DEV_AMQP_QUEUE: 'own',
      AMQP_PREFETCH: '7',
      MAX_CONCURRENCY: '3',
      CAPACITY_MAP: 'tiny=2',
      AMQP_PROJECT: 'ci',
    };
    expect(await read(environment, { amqpProject: 'web', driver: ['fake'] })).toEqual({
      amqpUrl: 'amqp://u:p@mq/ci',
      amqpExchange: 'solstice.jobs',
      amqpQueue: 'own',
      amqpRoutingKey: 'jobrequest.v1',
      amqpPrefetch: 7,
      maxConcurrency: 3,
      capacityMap: { tiny: 2 },
      amqpProject: 'web',
    });
  });

  it.each([
    ['a password in a flag', {}, { amqpUrl: 'amqp://u:secret@mq' }, 'every user of this machine'],
    ['another protocol', { AMQP_URL: 'http://mq:secret' }, {}, 'amqpUrl must be: amqp://USER'],
    ['too many at once', { AMQP_PREFETCH: '65' }, {}, 'it comes from BERTH_DEV_AMQP_PREFETCH'],
  ])('refuse %s', async (_name, environment, flags, message) => {
    const failure: unknown = await read(environment, flags).catch((error: unknown) => error);
    expect(String(failure)).toContain(message);
    expect(String(failure)).not.toContain('secret');
  });
});

describe('what the intake does with them', () => {
  const settings = (config: object, maxConcurrency?: number) =>
    amqpSettingsOf(parse(ServerConfig, { amqpUrl: 'amqp://mq', ...config }), maxConcurrency);

  it.each([
    ['the number of instances', {}, 8, 8],
    ['the number of messages', { amqpPrefetch: 4 }, 8, 4],
    ['the smaller of both', { amqpPrefetch: 40 }, 8, 8],
    ['64 at most', {}, 500, 64],
    ['64 without a limit', {}, undefined, 64],
  ])('it pauses at %s', (_name, config, maxConcurrency, expected) => {
    expect(settings(config, maxConcurrency)?.waitingMax).toBe(expected);
  });

  it.each([
    ['the default queue', {}, 'solstice.dlx', 'solstice.jobs.v1.dlq', 'solstice.jobs'],
    ['another queue', { amqpQueue: 'q', amqpResultExchange: 'r' }, 'q.dlx', 'q.dlq', 'r'],
  ])('it has a place for the dead letters and results of %s', (_name, config, exchange, queue, results) => {
    expect(settings(config)).toMatchObject({
      deadLetterExchange: exchange,
      deadLetterQueue: queue,
      resultExchange: results,
    });
  });

  describe('with a file of the password', () => {
    it.each([
      ['a line', 's3cret\n', 's3cret'],
      ['no end of line', 's3cret', 's3cret'],
      ['signs that a URL has for itself', 'a%4/@:# b?\r\n', 'a%4/@:# b?'],
    ])('takes it: %s', async (name, text, password) => {
      const url = settings({
        amqpUrl: 'amqps://berth@mq:5671/ci',
        amqpPasswordFile: await file(`password ${name}`, text),
      })?.url;
      const parsed = new URL(url ?? '');
      expect(parsed).toMatchObject({ username: 'berth', host: 'mq:5671', pathname: '/ci' });
      expect(decodeURIComponent(parsed.password)).toBe(password);
    });

    it.each([
      ['a URL with a password', 's3cret', { amqpUrl: 'amqp://u:secret@mq' }, 'has a password too'],
      ['a URL without a user', 's3cret', {}, 'must name the user'],
      ['no URL', 's3cret', { amqpUrl: undefined }, 'there is no amqpUrl'],
      ['an empty file', '\n', { amqpUrl: 'amqp://u@mq' }, 'as its only line'],
      ['several lines', 's3cret\nmore\n', { amqpUrl: 'amqp://u@mq' }, 'as its only line'],
      ['no file', undefined, { amqpUrl: 'amqp://u@mq' }, 'cannot read'],
    ])('refuses %s', async (name, text, config, message) => {
      const amqpPasswordFile = text === undefined ? join(directory, 'absent') : await file(`refused: ${name}`, text);
      const read = (): unknown => settings({ ...config, amqpPasswordFile });
      expect(read).toThrow(expect.objectContaining({ field: 'amqpPasswordFile' }));
      expect(read).toThrow(message);
      expect(read).not.toThrow('s3cret');
      expect(read).not.toThrow('secret@');
    });
  });

  it.each(['amqp://u:secret@[mq', 'amqp://u:secret%@mq'])('says nothing of a URL that cannot be read', (amqpUrl) => {
    const read = (): unknown => settings({ amqpUrl });
    expect(read).toThrow('amqpUrl (AMQP_URL) is not a URL');
    expect(read).not.toThrow('secret');
  });
});
