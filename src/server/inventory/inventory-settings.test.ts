// What the configuration of inventories may say, and that what is wrong is said with its field, without the secret.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from '../../api/parse.ts';
import { ServerConfig } from '../config.ts';
import { readInventorySettings } from './inventory-settings.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-inventory-'));
afterAll(() => rmSync(folder, { recursive: true }));
const write = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const secret = write('secret', 'open-sesame\n');
const lines = write('lines', 'open-sesame\nhidden\n');
const empty = write('empty', '');
const source = { origin: 'https://source.example', tokenFile: secret };
const logins = (...inventoryLogins: object[]) => readInventorySettings(parse(ServerConfig, { inventoryLogins }));
const files = (...inventoryFiles: object[]) => readInventorySettings(parse(ServerConfig, { inventoryFiles }));

describe('credentials of sources', () => {
  it.each([
    ['https://source.example/nodes', 'Bearer open-sesame'],
    ['https://source.example:443/nodes?all', 'Bearer open-sesame'],
    ['https://source.example:8443/nodes', `Basic ${Buffer.from('berth:open-sesame').toString('base64')}`],
    ['http://source.example/nodes', undefined],
    ['https://source.example.evil.test/nodes', undefined],
    ['https://other.example/nodes', undefined],
    ['no url', undefined],
  ])('for %s: %s', async (url, authorization) => {
    const settings = await logins(source, {
      ...{ origin: 'https://source.example:8443', user: 'berth', passwordFile: secret },
    });
    expect(await settings.authorizationFor(url)).toBe(authorization);
  });

  it('are read again each time', async () => {
    const tokenFile = write('changing', 'old');
    const settings = await logins({ ...source, tokenFile });
    writeFileSync(tokenFile, 'new\n');
    expect(await settings.authorizationFor('https://source.example/nodes')).toBe('Bearer new');
    rmSync(tokenFile);
    await expect(settings.authorizationFor('https://source.example/nodes')).rejects.toThrow(/cannot read .*changing/);
  });

  it.each([
    ['a path in the origin', [{ ...source, origin: 'https://source.example/nodes' }], 'inventoryLogins[0].origin'],
    ['credentials in it', [{ ...source, origin: 'https://a:open-sesame@h' }], 'inventoryLogins[0].origin'],
    ['plain HTTP', [{ ...source, origin: 'http://source.example' }], 'inventoryLogins[0].origin'],
    [
      'the same origin twice',
      [source, { ...source, origin: 'https://source.example:443' }],
      'inventoryLogins[1].origin',
    ],
    ['nothing', [{ origin: source.origin }], 'inventoryLogins[0].user'],
    ['a user alone', [{ origin: source.origin, user: 'a' }], 'inventoryLogins[0].passwordFile'],
    ['both', [{ ...source, user: 'a', passwordFile: secret }], 'inventoryLogins[0].tokenFile'],
    ['a colon in the user', [{ origin: source.origin, user: 'a:b', passwordFile: secret }], 'inventoryLogins[0].user'],
    ['a file that is not there', [{ ...source, tokenFile: join(folder, 'none') }], 'inventoryLogins[0].tokenFile'],
    ['an empty file', [{ ...source, tokenFile: empty }], 'inventoryLogins[0].tokenFile'],
    ['a file of two lines', [{ ...source, tokenFile: lines }], 'inventoryLogins[0].tokenFile'],
    ['an unknown field', [{ ...source, token: 'open-sesame' }], 'inventoryLogins[0].token'],
  ])('%s is refused', async (_name, given, field) => {
    const failure: unknown = await Promise.resolve()
      .then(() => logins(...given))
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'InvalidRequest', field });
    expect(String(failure)).not.toContain('open-sesame');
  });

  it('are taken for plain HTTP on this machine', async () => {
    const settings = await logins({ ...source, origin: 'http://127.0.0.1:8099' });
    expect(await settings.authorizationFor('http://127.0.0.1:8099/nodes')).toBe('Bearer open-sesame');
  });
});

it('an inventory has one file', async () => {
  expect((await files({ name: 'lab', file: '/etc/lab.yaml' })).files).toEqual(new Map([['lab', '/etc/lab.yaml']]));
  const twice = files({ name: 'lab', file: '/a' }, { name: 'lab', file: '/b' });
  await expect(twice).rejects.toMatchObject({ field: 'inventoryFiles[1].name' });
});
