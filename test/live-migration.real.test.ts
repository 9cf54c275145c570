// A virtual machine that moves between two hosts while it runs: two agents in network namespaces of their own, whose bridges are connected. It
// counts on its disk and on a volume all the time, answers on its network, and is the same guest afterwards.

import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MigrationPlan } from '../src/api/plans/migration-plan.ts';
import type { Instance } from '../src/api/resources/instance.ts';
import { hostTokenOf } from '../src/server/http/tokens.ts';
import { imageDirectory, tinyImage } from './tiny-image.ts';

const reason =
  process.getuid?.() !== 0
    ? 'only root may make network namespaces'
    : spawnSync('unshare', ['--net', 'sh', '-c', 'ip link add name b type bridge && ip tuntap add dev t mode tap'])
          .status === 0
      ? undefined
      : 'no bridges or taps can be made here (package iproute2)';

const execute = promisify(execFile);
const main = resolve(import.meta.dirname, '../src/main.ts');
const spaces = ['h1', 'h2'].map((name) => `bl${process.pid}-${name}`);
const addresses = ['10.99.0.1', '10.99.0.2'];
const guestAddress = '10.99.0.10';

/** Counts to its disk and its volume, one sector for each count, and tells on its web page how far it is and whether both have every count once. */
const program = `#!/bin/sh
ip addr add ${guestAddress}/24 dev eth0
mkdir -p /var/www/cgi-bin
cat >/var/www/cgi-bin/count <<'END'
#!/bin/sh
n=$(cat /run/count)
echo "Content-Type: text/plain"
echo
echo "boot $(cat /proc/sys/kernel/random/boot_id)"
echo "count $n"
echo "disk $(dd if=/dev/vda bs=512 skip=200000 count=$n 2>/dev/null | tr -d '\\000' | md5sum)"
echo "volume $(dd if=/dev/vdb bs=512 count=$n 2>/dev/null | tr -d '\\000' | md5sum)"
echo "want $(seq 1 $n | md5sum)"
END
chmod 755 /var/www/cgi-bin/count
{ n=0; while :; do
  n=$((n + 1))
  echo $n | dd of=/dev/vda bs=512 seek=$((199999 + n)) conv=sync,fsync 2>/dev/null
  echo $n | dd of=/dev/vdb bs=512 seek=$((n - 1)) conv=sync,fsync 2>/dev/null
  echo $n >/run/count.new; mv /run/count.new /run/count
done; } &
`;

describe.skipIf(reason !== undefined)(`a guest that moves while it runs${reason ? ` (${reason})` : ''}`, () => {
  let directory: string;
  let operator: string;
  let startAgent: (host: number) => Promise<void>;
  const children: ChildProcess[] = [];

  const within = (space: string | undefined): string[] => [`--net=/run/netns/${space}`];
  const inside = async (host: number, ...words: string[]): Promise<string> =>
    (await execute('nsenter', [...within(spaces[host]), ...words], { maxBuffer: 1024 ** 2 })).stdout;
  const start = async (host: number, words: readonly string[], ready: RegExp): Promise<void> => {
    const child = spawn('nsenter', [...within(spaces[host]), ...words], {
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: import.meta.dirname, // in the project's own directory a server takes the example of an image map
    });
    children.push(child);
    let said = '';
    await new Promise<void>((found, lost) => {
      const look = (bytes: Buffer): void => {
        said += bytes.toString();
        if (ready.test(said)) found();
      };
      child.stdout.on('data', look);
      child.stderr.on('data', look);
      child.once('exit', () => lost(new Error(`${words.join(' ')} ended: ${said}`)));
    });
  };
  const berth = async (...words: string[]): Promise<string> => {
    const environment = {
      ...process.env,
      BERTH_URL: `http://${addresses[0]}:7070`,
      BERTH_TOKEN: operator,
      BERTH_INSECURE_HTTP: 'true',
    };
    const call = [...within(spaces[0]), process.execPath, main, ...words];
    return (await execute('nsenter', call, { env: environment })).stdout;
  };
  const show = async (): Promise<Instance> => JSON.parse(await berth('show', 'db', '-o', 'json')) as Instance;
  const look = async () => {
    const page = await inside(
      0,
      'curl',
      '-sS',
      '--retry',
      '20',
      '--retry-all-errors',
      '--retry-delay',
      '1',
      '-m',
      '30',
      `http://${guestAddress}/cgi-bin/count`,
    );
    const field = (name: string): string => new RegExp(`^${name} (\\S+)`, 'm').exec(page)?.[1] ?? page;
    const count = Number(field('count'));
    return { boot: field('boot'), count, written: [field('disk'), field('volume')], want: field('want') };
  };

  /** What each host has of volumes, and of moves. */
  const volumeFiles = (): Promise<string[][]> =>
    Promise.all(
      ['h1', 'h2'].map(async (name) => [
        ...(await readdir(join(directory, name, 'volumes')).catch(() => [])),
        ...(await readdir(join(directory, name, 'incoming')).catch(() => [])),
      ]),
    );

  beforeAll(async () => {
    const tiny = await tinyImage();
    directory = await mkdtemp(join(tmpdir(), 'berth-live-'));
    await chmod(directory, 0o711); // guests run as users of their own
    for (const space of spaces) await execute('ip', ['netns', 'add', space]);
    for (const host of [0, 1]) {
      await inside(host, 'ip', 'link', 'set', 'lo', 'up');
      await inside(host, 'ip', 'link', 'add', 'br0', 'type', 'bridge');
    }
    await inside(0, 'ip', 'link', 'add', 'up0', 'type', 'veth', 'peer', 'name', 'up0', 'netns', spaces[1] ?? '');
    for (const [host, address] of addresses.entries()) {
      await inside(host, 'ip', 'link', 'set', 'up0', 'master', 'br0', 'up');
      await inside(host, 'ip', 'address', 'add', `${address}/24`, 'dev', 'br0');
      await inside(host, 'ip', 'link', 'set', 'br0', 'up');
    }
    const serverDirectory = join(directory, 'server');
    const config = async (name: string, value: object): Promise<string> => {
      const path = join(directory, `${name}.yaml`);
      await writeFile(path, JSON.stringify(value), { mode: 0o600 });
      return path;
    };
    const url = `http://${addresses[0]}:7070`;
    const listening = { listen: `${addresses[0]}:7070`, insecureHttp: true, dataDirectory: serverDirectory };
    const server = await config('server', { ...listening, heartbeatMs: 500, offlineAfterMs: 60_000 });
    await start(0, [process.execPath, main, 'server', '--config', server], /listens on/);
    operator = (await readFile(join(serverDirectory, 'operator.token'), 'utf8')).trim();
    const secret = Buffer.from((await readFile(join(serverDirectory, 'secret'), 'utf8')).trim(), 'base64url');
    startAgent = async (i) => {
      const hostName = `h${i + 1}`;
      const agent = await config(hostName, {
        ...{
          serverUrl: url,
          insecureHttp: true,
          hostName,
          machineId: String(i + 1).repeat(32), // as if each had a machine of its own
          address: addresses[i],
          token: hostTokenOf(secret, hostName, 0),
        },
        ...{ dataDirectory: join(directory, hostName), network: 'bridge:br0', drivers: ['qemu'] },
        imageRoots: [imageDirectory],
      });
      await start(i, [process.execPath, main, 'agent', '--config', agent], /registered/);
    };
    await startAgent(0);
    await berth('image', 'add', 'tiny', '--source', tiny.spec.source);
    await writeFile(join(directory, 'count.sh'), program);
  }, 240_000);
  afterAll(async () => {
    await berth('rm', 'db', '--wait').catch(() => undefined);
    for (const child of children.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    }
    for (const space of spaces) await execute('ip', ['netns', 'delete', space]);
    await rm(directory, { recursive: true, force: true });
  }, 60_000);

  it('keeps counting on its disk and answering, and does not boot again', async () => {
    await berth('volume', 'create', 'data', '--size', '1GiB');
    const size = ['--cpus', '1', '--memory', '128MiB', '--disk', '1GiB', '-v', 'data'];
    await berth(
      'run',
      'tiny',
      '--name',
      'db',
      ...size,
      '--user-data',
      join(directory, 'count.sh'),
      '--wait',
      '-t',
      '170s',
    );
    await startAgent(1);
    const before = await look();
    expect(before.written).toEqual([before.want, before.want]);
    const ping = spawn('nsenter', [...within(spaces[0]), 'busybox', 'ping', guestAddress], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(ping);
    const replies = createInterface({ input: ping.stdout })[Symbol.asyncIterator]();
    const reply = async (): Promise<void> => {
      for (;;) {
        const { value, done } = await replies.next();
        if (done === true) throw new Error('the ping ended');
        if (/bytes from/.test(value)) return;
      }
    };
    await reply();

    const plan = JSON.parse(await berth('migrate', 'db', '--live', '-o', 'json')) as MigrationPlan;
    expect(plan).toMatchObject({ kind: 'live', from: 'h1', to: 'h2', way: 'direct', obstacles: [] });
    const { hash } = plan;
    expect(await berth('migrate', 'db', '--live', '--apply', hash, '--wait')).toContain('db: Done, from h1 to h2');
    await reply();
    const after = await look();
    expect(after.boot).toBe(before.boot);
    expect(after.count).toBeGreaterThan(before.count);
    expect(after.written).toEqual([after.want, after.want]); // none lost, none twice
    const { status } = await show();
    expect(status.migration?.stoodStillMs).toBeTypeOf('number');
    process.stderr.write(`the guest stood still for ${status.migration?.stoodStillMs} ms\n`); // a figure for readers
    expect(await berth('events', 'db')).toContain(`stood still for ${status.migration?.stoodStillMs} ms`);
    expect(status).toMatchObject({
      host: 'h2',
      phase: 'Running',
      incarnation: 2,
      migration: { kind: 'live', way: 'direct' },
    });
    const left = (await readdir(join(directory, 'h1', 'qemu'))).filter((name) => name.startsWith('inst_'));
    expect(left).toEqual([]);
    expect(await volumeFiles()).toEqual([[], [expect.stringMatching(/^vol_/)]]);
  }, 240_000);

  it('comes back by a drain', async () => {
    const drain = await berth('host', 'drain', 'h2');
    expect(drain).toMatch(/db +moved live +h1/);
    const hash = /--apply (\w+)/.exec(drain)?.[1] ?? '';
    expect(await berth('host', 'drain', 'h2', '--apply', hash, '--watch')).toMatch(/h2: Drained/);
    const { written, want } = await look();
    expect(written).toEqual([want, want]);
    expect(await volumeFiles()).toEqual([[expect.stringMatching(/^vol_/)], []]);
    expect((await show()).status).toMatchObject({ host: 'h1', incarnation: 3, diskIncarnation: 1 });
  }, 240_000);
});
