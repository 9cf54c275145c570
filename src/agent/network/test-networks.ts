// A host, guests and the world outside, each a network namespace of its own, made for one test and taken away after it. Used by tests only.

import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { system } from '../../base/system.ts';
import type { Guest, GuestSpec } from '../drivers/driver.ts';
import type { GuestNetwork } from './guest-network.ts';
import type { NewGuest, PlacedGuest } from './host-network.ts';

/** Why there can be none here; undefined: there can. */
export function whyNoNetworks(): string | undefined {
  if (system.userId() !== 0) return 'only root may make network namespaces';
  for (const [program, argument, name] of [
    ['ip', '-V', 'iproute2'],
    ['nft', '--version', 'nftables'],
    ['dnsmasq', '--version', 'dnsmasq-base'],
    ['busybox', '--help', 'busybox-static'],
    ['curl', '--version', 'curl'],
  ] as const) {
    if (spawnSync(program, [argument]).status !== 0) return `${program} is not installed (package ${name})`;
  }
  const tried = [
    '--net',
    'sh',
    '-c',
    'ip link add name b type bridge && ip tuntap add dev t mode tap && nft add table bridge t',
  ];
  return spawnSync('unshare', tried).status === 0 ? undefined : 'bridges, taps or nftables do not work here';
}

export interface Said {
  readonly ok: boolean;
  readonly text: string;
}

interface AgentCalls {
  fault(): Promise<string | null>;
  reserve(guest: NewGuest): Promise<GuestNetwork>;
  adopt(guest: PlacedGuest): Promise<void>;
  settle(): Promise<void>;
  attach(guest: PlacedGuest): Promise<void>;
  release(instanceId: string): Promise<void>;
  leave(): Promise<void>;
  recover(): Promise<void>;
  create(spec: GuestSpec): Promise<void>;
  remove(instanceId: string): Promise<void>;
  guests(): Promise<Guest[]>;
  untilReady(instanceId: string): Promise<Guest>;
  untilAddress(instanceId: string): Promise<Guest>;
  log(instanceId: string): Promise<string>;
  fingerprint(): Promise<{ available: boolean; reason?: string }>;
}
export type TestAgent = AgentCalls & { kill(): Promise<void> };

let made = 0;

/** For nsenter. Not `ip -n`, nor `ip netns exec`: those mount as well, which cannot be done in a chroot. */
const pathOf = (namespace: string): string => `--net=/run/netns/${namespace}`;

export async function makeNetworks() {
  const directory = await mkdtemp(join(tmpdir(), 'berth-network-'));
  await chmod(directory, 0o755); // as /run is: dnsmasq is another user
  const prefix = `bn${system.pid()}-${made++}-`;
  const spaces = ['host', 'outside'].map((name) => prefix + name);
  const children: ChildProcess[] = [];

  const within = (name: string): string => pathOf(prefix + name);
  const run = (program: string, ...words: string[]): Promise<Said> =>
    new Promise((resolve) =>
      execFile(program, words, (error, stdout, stderr) => resolve({ ok: error === null, text: `${stdout}${stderr}` })),
    );
  const must = async (program: string, ...words: string[]): Promise<string> => {
    const { ok, text } = await run(program, ...words);
    if (!ok) throw new Error(`${program} ${words.join(' ')}: ${text}`);
    return text;
  };
  const inside =
    (name: string) =>
    (...words: string[]): Promise<Said> =>
      run('nsenter', within(name), ...words);
  const mustInside =
    (name: string) =>
    (...words: string[]): Promise<string> =>
      must('nsenter', within(name), ...words);
  const start = (name: string, ...words: string[]): ChildProcess => {
    const child = spawn('nsenter', [within(name), ...words], { stdio: ['pipe', 'pipe', 'inherit'] });
    children.push(child);
    return child;
  };

  for (const space of spaces) {
    await must('ip', 'netns', 'add', space);
    await must('nsenter', pathOf(space), 'ip', 'link', 'set', 'lo', 'up');
  }
  await must(
    'nsenter',
    pathOf(`${prefix}host`),
    'ip',
    'link',
    'add',
    'up0',
    'type',
    'veth',
    'peer',
    'name',
    'eth0',
    'netns',
    `${prefix}outside`,
  );
  for (const address of ['192.0.2.2/24', '192.0.2.3/24', '169.254.10.1/16'])
    await must('nsenter', pathOf(`${prefix}outside`), 'ip', 'address', 'add', address, 'dev', 'eth0');
  await must('nsenter', pathOf(`${prefix}host`), 'ip', 'address', 'add', '192.0.2.1/24', 'dev', 'up0');
  await must('nsenter', pathOf(`${prefix}host`), 'ip', 'link', 'set', 'up0', 'up');
  await must('nsenter', pathOf(`${prefix}outside`), 'ip', 'link', 'set', 'eth0', 'up');
  await must('nsenter', pathOf(`${prefix}host`), 'ip', 'route', 'add', '169.254.0.0/16', 'dev', 'up0');

  const leaseScript = join(directory, 'on-lease');
  await writeFile(
    leaseScript,
    '#!/bin/sh\ncase $1 in bound|renew) ip address replace $ip/$mask dev $interface; ip route replace default via $router; echo "leased $ip $router $dns";; esac\n',
    { mode: 0o755 },
  );

  return {
    directory,
    hostNamespace: `/run/netns/${prefix}host`,
    host: inside('host'),
    mustHost: mustInside('host'),
    outside: inside('outside'),

    /** Answers every request with the address that it came from. */
    async serve(where: 'host' | 'outside', port: number): Promise<void> {
      const program = `require('node:http').createServer((q, s) => s.end('seen ' + q.socket.remoteAddress)).listen(${port}, '0.0.0.0', () => console.log('up'))`;
      const { stdout } = start(where, system.nodePath(), '-e', program);
      if (stdout !== null) await once(stdout, 'data');
    },

    /** `libvirt`: the socket of one that is in the host's namespace; without it the driver is that of QEMU. */
    async agent({ bridge = '', imageRoot = '/', libvirt = '', subnet = '10.77.0.0/24' } = {}): Promise<TestAgent> {
      const program = fileURLToPath(new URL('./test-agent.ts', import.meta.url));
      const child = start('host', system.nodePath(), program, directory, bridge, imageRoot, libvirt, subnet);
      const ended = once(child, 'exit');
      if (child.stdin === null || child.stdout === null) throw new Error('no pipes');
      const { stdin } = child;
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      let last: Promise<unknown> = Promise.resolve();
      const ask = (call: string, argument?: unknown): Promise<unknown> => {
        const asked = last.then(async () => {
          stdin.write(`${JSON.stringify({ call, argument })}\n`);
          const { value, done } = await lines.next();
          if (done === true) throw new Error(`the agent ended during ${call}`);
          const said = JSON.parse(value) as { answer?: unknown; error?: string };
          if (said.error !== undefined) throw new Error(said.error);
          return said.answer;
        });
        last = asked.catch(() => {});
        return asked;
      };
      const kill = async (): Promise<void> => {
        child.kill('SIGKILL');
        await ended;
      };
      return new Proxy({ kill } as TestAgent, {
        get: (target, name) =>
          name === 'kill'
            ? target.kill
            : name === 'then'
              ? undefined
              : (argument: unknown) => ask(String(name), argument),
      });
    },

    /** A guest without a machine: a namespace, with the cable that would lead to its tap. It has a place, and is connected. */
    async guest(agent: TestAgent, name: string, project?: string) {
      const instanceId = `inst_${name}`;
      const folder = join(directory, 'guests', instanceId);
      await mkdir(folder, { recursive: true });
      await writeFile(
        join(folder, 'metadata.json'),
        JSON.stringify({
          metadataId: `${instanceId}-1`,
          hostname: name,
          imageName: 'tiny',
          sshKeys: [`ssh-ed25519 AAAA ${name}`],
          userData: `secret of ${name}`,
        }),
      );
      const network = await agent.reserve({
        ...{ instanceId, uuid: `uuid of ${name}`, directory: folder, name },
        ...(project === undefined ? {} : { project }),
      });
      if (network.kind !== 'nat') throw new Error('not on the NAT network');
      const space = prefix + name;
      spaces.push(space);
      await must('ip', 'netns', 'add', space);
      await must('nsenter', pathOf(space), 'ip', 'link', 'set', 'lo', 'up');
      await must(
        'nsenter',
        pathOf(`${prefix}host`),
        'ip',
        'link',
        'add',
        network.tap,
        'type',
        'veth',
        'peer',
        'name',
        'eth0',
        'netns',
        space,
      );
      await must('nsenter', pathOf(space), 'ip', 'link', 'set', 'eth0', 'address', network.macAddress, 'up');
      const placed: PlacedGuest = { instanceId, directory: folder, network };
      await agent.attach(placed);
      const inGuest = inside(name);
      return {
        ...network,
        placed,
        instanceId,
        run: inGuest,
        must: mustInside(name),
        lease: (tries = 20): Promise<Said> =>
          inGuest(
            'busybox',
            'udhcpc',
            '-i',
            'eth0',
            '-n',
            '-q',
            '-f',
            '-t',
            String(tries),
            '-T',
            '1',
            '-s',
            leaseScript,
          ),
        get: (url: string, ...more: string[]): Promise<Said> =>
          inGuest('curl', '--silent', '--show-error', '--fail', '--max-time', '2', ...more, url),
      };
    },

    /** How many packets each counter of ours has seen. */
    async counters(): Promise<Record<string, number>> {
      const said = JSON.parse(await mustInside('host')('nft', '--json', 'list', 'counters')) as {
        nftables: { counter?: { name: string; packets: number } }[];
      };
      return Object.fromEntries(
        said.nftables.flatMap(({ counter }) => (counter ? [[counter.name, counter.packets]] : [])),
      );
    },

    async dispose(): Promise<void> {
      for (const child of children) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        const ended = once(child, 'exit');
        child.kill('SIGKILL');
        await ended;
      }
      for (const space of spaces) {
        // What is left in a namespace of this test was started by it: dnsmasq, guests.
        const left = (await run('ip', 'netns', 'pids', space)).text.split('\n').filter((line) => /^[0-9]+$/.test(line));
        for (const pid of left) system.signal(Number(pid), 'SIGKILL');
        await run('ip', 'netns', 'delete', space);
      }
      await rm(directory, { recursive: true, force: true });
    },
  };
}
export type TestNetworks = Awaited<ReturnType<typeof makeNetworks>>;
