// What users of guests reach of the networks around their host: real rules, with a namespace for the host and one for the world outside.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hostGuardRules } from './host-guard-rules.ts';
import { makeNetworks, type TestNetworks, whyNoNetworks } from './test-networks.ts';

const first = 1_940_000_000;
const state = { table: 'berth_agent_1', users: { first, count: 10 }, besides: [], ports: [] };
const reason = whyNoNetworks();
/** Of curl. */
const refused = 7;

describe.skipIf(reason !== undefined)(
  `around a host with guests on their own networks${reason ? ` (${reason})` : ''}`,
  () => {
    let networks: TestNetworks;
    beforeAll(async () => {
      networks = await makeNetworks();
      await networks.serve('outside', 80);
      for (const address of [
        '10.9.9.9/32',
        '172.31.9.9/32',
        '192.168.9.9/32',
        '172.32.9.9/32',
        'fd00::9/128',
        'fe80::9/64',
      ])
        await networks.outside('ip', 'address', 'add', address, 'dev', 'eth0', 'nodad');
      await networks.mustHost('ip', 'route', 'add', 'default', 'via', '192.0.2.2');
      for (const address of ['fe80::1/64', 'fd00::1/64'])
        await networks.mustHost('ip', 'address', 'add', address, 'dev', 'up0', 'nodad');
      await networks.mustHost('ip', '-6', 'route', 'add', 'default', 'dev', 'up0');
    });
    afterAll(() => networks.dispose());

    const load = async (change: Pick<Parameters<typeof hostGuardRules>[0], 'privateAddresses' | 'resolvers'>) => {
      const file = join(networks.directory, 'guard.nft');
      await writeFile(file, hostGuardRules({ ...state, ...change }));
      await networks.mustHost('nft', '--file', file);
    };
    /** What came of it: an exit code of curl, or what the server said. */
    const ask = async (user: number, url: string): Promise<string | number> => {
      const curl = ['curl', '--silent', '--max-time', '10', '--write-out', ' %{exitcode}', '--globoff', url];
      const asUser = ['setpriv', '--reuid', String(user), '--regid', String(user), '--clear-groups', '--'];
      const { text } = await networks.host(...asUser, ...curl);
      return text.startsWith('seen') ? 'seen' : Number(text.trim().split(' ').at(-1));
    };

    it('no link-local address is reached by a guest, and any by others', async () => {
      expect(await ask(first, 'http://169.254.10.1/')).toBe('seen');
      await load({ privateAddresses: 'allow', resolvers: [] });
      for (const user of [first, first + 9]) expect(await ask(user, 'http://169.254.10.1/')).toBe(refused);
      for (const user of [0, first + 10]) expect(await ask(user, 'http://169.254.10.1/')).toBe('seen');
      for (const host of ['192.0.2.2', '10.9.9.9', '172.31.9.9', '192.168.9.9'])
        expect(await ask(first, `http://${host}/`), host).toBe('seen');
      const { to_link_local: before = 0 } = await networks.counters();
      expect(await ask(first, 'http://[fe80::9%25up0]/')).toBe(refused);
      expect((await networks.counters())['to_link_local']).toBeGreaterThan(before);
    });

    it('no private address is either, where the operator says so', async () => {
      await load({ privateAddresses: 'deny', resolvers: [] });
      for (const host of ['10.9.9.9', '172.31.9.9', '192.168.9.9', '169.254.10.1'])
        expect(await ask(first, `http://${host}/`), host).toBe(refused);
      const { to_private: before = 0 } = await networks.counters();
      expect(await ask(first, 'http://[fd00::9]/')).toBe(refused);
      expect((await networks.counters())['to_private']).toBeGreaterThan(before);
      for (const host of ['192.0.2.2', '172.32.9.9']) expect(await ask(first, `http://${host}/`), host).toBe('seen');
      expect(await ask(0, 'http://10.9.9.9/')).toBe('seen');
    });

    it('a resolver is asked for names wherever it is, and for nothing else', async () => {
      await networks.serve('outside', 53);
      await load({ privateAddresses: 'deny', resolvers: ['169.254.10.1', '10.9.9.9'] });
      for (const host of ['169.254.10.1', '10.9.9.9']) {
        expect(await ask(first, `http://${host}:53/`), host).toBe('seen');
        expect(await ask(first, `http://${host}/`), host).toBe(refused);
      }
    });
  },
);
