import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createManualClock } from '../../base/manual-clock.ts';
import { silentLogger } from '../../base/log.ts';
import { system, systemClock } from '../../base/system.ts';
import { createHostGuard, type HostGuard } from './host-guard.ts';

/** Unused, and another range for each test process. */
const first = 1_950_000_000 + system.pid() * 10;
const users = { first, count: 10 };
const table = `berth_agent_test${system.pid()}`;
const reason =
  system.userId() !== 0
    ? 'only root may make rules'
    : spawnSync('unshare', ['--net', 'nft', 'add table inet t']).status === 0
      ? undefined
      : 'no nftables are to be had here (package nftables)';

describe.skipIf(reason !== undefined)(`a host that is closed to users of guests${reason ? ` (${reason})` : ''}`, () => {
  let directory: string;
  let guard: HostGuard;
  const guards: HostGuard[] = [];
  const servers: Server[] = [];
  const children: ChildProcess[] = [];
  const make = (change: Partial<Parameters<typeof createHostGuard>[0]> = {}): HostGuard => {
    const made = createHostGuard({
      table,
      users,
      ports: [],
      privateAddresses: 'allow',
      rulesFile: join(directory, 'host-guard.nft'),
      resolvFile: join(directory, 'resolv.conf'),
      clock: systemClock,
      log: silentLogger,
      ...change,
    });
    guards.push(made);
    return made;
  };
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-guard-'));
    guard = make();
  });
  afterEach(async () => {
    for (const each of guards.splice(0)) each.stop();
    for (const child of children.splice(0)) {
      child.kill('SIGKILL');
      await once(child, 'close');
    }
    for (const server of servers.splice(0)) server.close();
    spawnSync('nft', [`add table inet ${table}; delete table inet ${table}`]);
    await rm(directory, { recursive: true });
  });

  const tableThere = (): boolean => spawnSync('nft', ['list', 'table', 'inet', table]).status === 0;
  /** Says its name on each connection. */
  const serve = async (host: string, port = 0): Promise<number> => {
    const server = createServer((socket) => socket.end('hello'));
    servers.push(server);
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve));
    return (server.address() as AddressInfo).port;
  };
  const as = (user: number, program: string): ChildProcess => {
    const child = spawn('setpriv', [
      ...['--reuid', String(user), '--regid', String(user), '--clear-groups', '--'],
      ...[process.execPath, '-e', program],
    ]);
    children.push(child);
    return child;
  };
  const saidBy = async (child: ChildProcess): Promise<string> => {
    let said = '';
    child.stdout?.on('data', (bytes: Buffer) => (said += bytes.toString()));
    await once(child, 'close');
    children.splice(children.indexOf(child), 1);
    return said;
  };
  const ask = ({ user, host, port }: { user: number; host: string; port: number }): Promise<string> =>
    saidBy(
      as(
        user,
        `const socket = require('node:net').connect(${port}, '${host}');
         socket.on('data', (bytes) => process.stdout.write(bytes)).on('error', (error) => process.stdout.write(error.code));`,
      ),
    );
  const ownAddress = Object.values(networkInterfaces())
    .flat()
    .find((each) => each?.family === 'IPv4' && !each.internal)?.address;
  const addresses = ['127.0.0.1', '::1', ...(ownAddress === undefined ? [] : [ownAddress])];

  it('answers them at none of its addresses, and everybody else as ever', async () => {
    for (const host of addresses) {
      const port = await serve(host);
      expect(await ask({ user: first, host, port }), host).toBe('hello');
      await guard.close();
      for (const user of [first, first + 9]) expect(await ask({ user, host, port }), host).toBe('ECONNREFUSED');
      for (const user of [0, first - 1, first + 10]) expect(await ask({ user, host, port }), host).toBe('hello');
      await guard.open(() => true);
    }
  });

  it('answers none of those either whom earlier settings gave to guests', async () => {
    const port = await serve('127.0.0.1');
    await guard.close();
    expect(await ask({ user: first + 10, host: '127.0.0.1', port })).toBe('hello');
    await guard.close([first + 10]);
    for (const user of [first, first + 10]) expect(await ask({ user, host: '127.0.0.1', port })).toBe('ECONNREFUSED');
    expect(await ask({ user: first + 11, host: '127.0.0.1', port })).toBe('hello');
  });

  it('answers them where its operator says so', async () => {
    const [open, closed] = [await serve('127.0.0.1'), await serve('127.0.0.1')];
    await make({ ports: [open] }).close();
    expect(await ask({ user: first, host: '127.0.0.1', port: open })).toBe('hello');
    expect(await ask({ user: first, host: '127.0.0.1', port: closed })).toBe('ECONNREFUSED');
  });

  it('tells them names where its resolver is its own, and nothing else there', async () => {
    const resolver = '127.77.0.53';
    await writeFile(join(directory, 'resolv.conf'), `nameserver ${resolver}\n`);
    await serve(resolver, 53);
    const other = await serve(resolver);
    const names = createSocket('udp4').on('message', (_, { port, address }) => names.send('name', port, address));
    await new Promise<void>((resolve) => names.bind(53, resolver, resolve));
    await guard.close();
    expect(await ask({ user: first, host: resolver, port: 53 })).toBe('hello');
    expect(await ask({ user: first, host: resolver, port: other })).toBe('ECONNREFUSED');
    const asked = as(
      first,
      `const socket = require('node:dgram').createSocket('udp4');
       socket.on('message', (bytes) => { process.stdout.write(bytes); socket.close(); }).send('?', 53, '${resolver}');`,
    );
    expect(await saidBy(asked)).toBe('name');
    names.close();
  });

  it('says whether nftables work at all', async () => {
    expect(await guard.fault()).toBeUndefined();
    expect(tableThere()).toBe(false);
  });

  it('is answered by them where they listen: published ports, of TCP and UDP, also by connections that were there before', async () => {
    const guest = as(
      first,
      `const tcp = require('node:net').createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1', () => {
         const udp = require('node:dgram').createSocket('udp4').on('message', (bytes, { port, address }) => udp.send(bytes, port, address));
         udp.bind(0, '127.0.0.1', () => console.log(tcp.address().port + ' ' + udp.address().port));
       });`,
    );
    const [ports] = await once(guest.stdout ?? expect.unreachable(), 'data');
    const [tcp = 0, udp = 0] = String(ports).split(' ').map(Number);
    const before = connect(tcp, '127.0.0.1');
    await once(before, 'connect');
    await guard.close();
    const after = connect(tcp, '127.0.0.1');
    for (const socket of [before, after]) {
      socket.write('echo');
      expect(String((await once(socket, 'data'))[0])).toBe('echo');
      socket.destroy();
    }
    const asking = createSocket('udp4');
    const answered = once(asking, 'message');
    asking.send('datagram', udp, '127.0.0.1');
    expect(String((await answered)[0])).toBe('datagram');
    asking.close();
  });

  it('is open again when none is left, not when one came meanwhile, and is closed once however often it is asked', async () => {
    await guard.close();
    await guard.close();
    await guard.open(() => false);
    expect(tableThere()).toBe(true);
    await Promise.all([guard.open(() => true), guard.close()]);
    expect(tableThere()).toBe(true);
    await guard.open(() => true);
    await guard.open(() => true);
    expect(tableThere()).toBe(false);
  });

  it('stays closed while no agent runs; the next one closes it anew or opens it', async () => {
    await guard.close();
    guard.stop();
    expect(tableThere()).toBe(true);
    const port = await serve('127.0.0.1');
    const second = make({ ports: [port] });
    await second.close();
    expect(await ask({ user: first, host: '127.0.0.1', port })).toBe('hello');
    second.stop();
    const third = make();
    await third.open(() => true); // it does not know of it
    expect(tableThere()).toBe(true);
    expect(await third.adopt()).toBe(true);
    await third.open(() => true);
    expect(tableThere()).toBe(false);
    expect(await third.adopt()).toBe(false);
  });

  it('is open again when its agent was refused for good, unless a guest runs', async () => {
    await guard.close();
    guard.stop();
    const guest = as(first, "console.log('up'); setInterval(() => {}, 1000);");
    await once(guest.stdout ?? expect.unreachable(), 'data');
    const refused = make();
    await refused.leave();
    expect(tableThere()).toBe(true);
    const ended = once(guest, 'close');
    guest.kill('SIGKILL');
    await ended;
    children.splice(children.indexOf(guest), 1);
    await refused.leave();
    await refused.leave();
    expect(tableThere()).toBe(false);
  });

  it('is closed as soon as it can be, where it could not be at first', async () => {
    const clock = createManualClock();
    const rulesFile = join(directory, 'later', 'host-guard.nft');
    const late = make({ clock, rulesFile });
    await expect(late.close()).rejects.toThrow('ENOENT');
    clock.advance(10_000); // in vain
    await expect.poll(() => clock.nextDueMs()).toBe(clock.monotonicMs() + 10_000);
    expect(tableThere()).toBe(false);
    await mkdir(join(directory, 'later'));
    clock.advance(10_000);
    await expect.poll(tableThere).toBe(true);
    await late.open(() => true);
    expect(tableThere()).toBe(false);
  });

  it('is not called closed where the rules could not be put back', async () => {
    const clock = createManualClock();
    const folder = join(directory, 'folder');
    await mkdir(folder);
    const tried = make({ clock, rulesFile: join(folder, 'host-guard.nft') });
    await tried.close();
    spawnSync('nft', ['delete', 'table', 'inet', table]);
    await rm(folder, { recursive: true });
    clock.advance(10_000); // in vain
    await expect(tried.close()).rejects.toThrow('ENOENT');
    await mkdir(folder);
    await tried.close();
    expect(tableThere()).toBe(true);
    await tried.open(() => true);
    expect(tableThere()).toBe(false);
  });

  it('is closed again when somebody took the rules away, or its resolver has become another', async () => {
    const clock = createManualClock();
    await make({ clock }).close();
    const rules = (): string => spawnSync('nft', ['list', 'table', 'inet', table]).stdout.toString();
    spawnSync('nft', ['delete', 'table', 'inet', table]);
    clock.advance(10_000);
    await expect.poll(rules).toContain('from_guests');
    await writeFile(join(directory, 'resolv.conf'), 'nameserver 127.77.0.54\n');
    await expect.poll(() => clock.nextDueMs()).toBe(clock.monotonicMs() + 10_000); // no tool is at work any more
    clock.advance(10_000);
    await expect.poll(rules).toContain('127.77.0.54');
  });
});
