import { spawnSync } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from '../api/parse.ts';
import { newId } from '../base/ids.ts';
import { silentLogger } from '../base/log.ts';
import { seededPrng } from '../base/prng.ts';
import { system } from '../base/system.ts';
import { AgentConfig } from './config.ts';
import { startAgent } from './run.ts';

describe('the agent as a process', () => {
  let directory: string;
  let server: Server;
  let calls: { method: string; path: string; token: string | undefined; body: string }[];
  let status: number;
  let heard: () => void;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-agent-'));
    calls = [];
    status = 200;
    heard = () => {};
    server = createServer((request, response) => {
      let body = '';
      request.on('data', (piece: Buffer) => (body += piece.toString()));
      request.on('end', () => {
        calls.push({
          method: request.method ?? '',
          path: request.url ?? '',
          token: request.headers.authorization,
          body,
        });
        const session = { hostId: 'host_1', epoch: 1, heartbeatMs: 1000, offlineAfterMs: 5000 };
        const refusal = { error: { code: 'Conflict', message: 'registered by another machine' } };
        response.writeHead(status, { 'content-type': 'application/json' });
        if (request.url?.includes('/assignments')) response.write('{"type":"sync","revision":1,"assignments":[]}\n');
        else response.end(JSON.stringify(status === 200 ? session : refusal));
        heard();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await rm(directory, { recursive: true });
  });

  const config = (change: Record<string, unknown> = {}): AgentConfig =>
    parse(AgentConfig, {
      serverUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      token: 'secret',
      hostName: 'host-1',
      dataDirectory: directory,
      drivers: ['fake'],
      ...change,
    });
  const until = async (what: () => boolean): Promise<void> => {
    while (!what()) await new Promise<void>((resolve) => (heard = resolve));
  };

  it('warns of a token that others may read', async () => {
    const tokenFile = join(directory, 'token');
    await writeFile(tokenFile, 'secret');
    await chmod(tokenFile, 0o640);
    const warnings: string[] = [];
    const log = { ...silentLogger, warn: (message: string) => void warnings.push(message) };
    const { token: _, ...configured } = config({ tokenFile });
    const agent = await startAgent(configured, { log });
    await agent.close();
    expect(warnings).toContain(`other users of this machine may read ${tokenFile}: chmod 600 ${tokenFile}`);
  });

  it('registers what it measured, with its token, and asks for its assignments', async () => {
    const agent = await startAgent(config({ labels: { zone: 'a' } }), { log: silentLogger });
    await until(() => calls.some((call) => call.path.includes('/assignments')));
    await agent.close();
    const registration = calls.find((call) => call.path === '/v1/hosts/host-1/session');
    expect(registration).toMatchObject({ method: 'PUT', token: 'Bearer secret' });
    expect(JSON.parse(registration?.body ?? '')).toMatchObject({
      labels: { zone: 'a' },
      drivers: [{ name: 'fake', available: true }],
      capacity: { VCPU: expect.any(Number) as number, MEMORY_MB: expect.any(Number) as number },
    });
  });

  it('is told where the guests of zones go, or says what is missing', async () => {
    const start = (change: Record<string, unknown>): Promise<unknown> =>
      startAgent(config({ drivers: ['zones'], ...change }), { log: silentLogger });
    await expect(start({})).rejects.toMatchObject({ code: 'InvalidRequest', field: 'zones' });
    for (const zones of [
      { dataset: '/rpool', globalNic: 'igb0' },
      { dataset: 'rpool/a b', globalNic: 'igb0' },
    ])
      expect(() => config({ zones })).toThrow('dataset');
    expect(() => config({ zones: { dataset: 'rpool/berth', globalNic: 'igb' } })).toThrow('globalNic');
  });

  it('asks which images are wanted, also where guests are only pretended', async () => {
    const agent = await startAgent(config(), { log: silentLogger });
    await until(() => calls.some((call) => call.path === '/v1/hosts/host-1/images'));
    await agent.close();
  });

  it('reads its token from a file', async () => {
    const tokenFile = join(directory, 'token');
    await writeFile(tokenFile, 'from-a-file\n');
    const agent = await startAgent(config({ token: undefined, tokenFile }), { log: silentLogger });
    await until(() => calls.length > 0);
    await agent.close();
    expect(calls[0]?.token).toBe('Bearer from-a-file');
  });

  it('keeps a second agent out of its directory, and lets one in after it is closed', async () => {
    const agent = await startAgent(config(), { log: silentLogger });
    await expect(startAgent(config(), { log: silentLogger })).rejects.toThrow(`cannot use ${directory}`);
    await agent.close();
    await (await startAgent(config(), { log: silentLogger })).close();
  });

  it('says so when its host belongs to another machine', async () => {
    status = 409;
    const agent = await startAgent(config(), { log: silentLogger });
    expect((await agent.failed).message).toBe('cannot register host "host-1": registered by another machine');
    await agent.close();
  });

  it.skipIf(system.userId() !== 0 || spawnSync('nft', ['list', 'tables']).status !== 0)(
    'takes its rules away when it was refused for good (as root, with nftables)',
    async () => {
      const agentId = newId('agent', 0, seededPrng(system.pid()));
      await writeFile(join(directory, 'agent-id'), `${agentId}\n`);
      const table = `berth_${agentId}`;
      spawnSync('nft', ['add', 'table', 'inet', table]); // of a run with guests
      const isThere = (): boolean => spawnSync('nft', ['list', 'table', 'inet', table]).status === 0;
      const users = { guestUsers: { first: 1_850_000_000 + system.pid(), count: 1 } };
      await (await startAgent(config(users), { log: silentLogger })).close();
      expect(isThere()).toBe(true);
      status = 409;
      const agent = await startAgent(config(users), { log: silentLogger });
      await agent.failed;
      await agent.close();
      expect(isThere()).toBe(false);
    },
  );

  it.each([
    ['an unknown driver', { drivers: ['qmeu'] }, 'did you mean "qemu"?'],
    ['a subnet for guests that is none', { network: 'nat', natSubnet: '10.77.0.1/16' }, 'natSubnet: "10.77.0.1/16"'],
    ['a subnet for guests that is too large', { network: 'nat', natSubnet: '10.0.0.0/8' }, 'from /16 to /29'],
    ['a denied subnet that is none', { natDenied: ['10.0.0.0/8', '10.1.1.1/8'] }, 'natDenied: "10.1.1.1/8"'],
    ['a port range that holds nothing', { portRange: { first: 9, last: 8 } }, 'portRange: 9 to 8 holds no port'],
    ['a range for moves that holds nothing', { movePorts: { first: 9, last: 8 } }, 'movePorts: 9 to 8 holds no port'],
    ['an address for moves that is none', { moveAddress: '999.1.1.1' }, '"999.1.1.1" is not an IP address'],
    ['stated CPUs beside those of cells', { numaCells: true, capacity: { VCPU: 2 } }, 'what the cells have'],
    [
      'a device twice',
      {
        devices: [
          { name: 'a', amounts: {} },
          { name: 'a', amounts: {} },
        ],
      },
      'is given twice',
    ],
    ['two tokens', { tokenFile: '/nowhere' }, 'leave one'],
    ['a token file that is not there', { token: undefined, tokenFile: '/nowhere' }, 'berth host token host-1'],
  ])('refuses %s and says what to do', async (_, change, message) => {
    await expect(startAgent(config(change), { log: silentLogger })).rejects.toThrow(message);
  });
});
