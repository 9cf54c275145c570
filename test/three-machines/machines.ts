// Machines that share this one's kernel and programs, and nothing else: each has network, mounts, name and processes of its own. They are
// connected by a bridge that nothing else is connected to, and vanish with the process that made them.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const project = resolve(import.meta.dirname, '../..');
const execute = promisify(execFile);

export interface Machines {
  /** Runs a script of bash as root; resolves with its output, and rejects with what it said when it fails. */
  run(machine: string, script: string): Promise<string>;
  close(): Promise<void>;
}

/** The first has 10.77.0.1, the second 10.77.0.2. */
export async function startMachines(names: readonly string[]): Promise<Machines> {
  const exchange = mkdtempSync(join(tmpdir(), 'berth-exchange-'));
  chmodSync(exchange, 0o755);
  const node = process.execPath.startsWith(`${project}/`)
    ? `/mnt/berth${process.execPath.slice(project.length)}`
    : process.execPath;
  const holders: ChildProcess[] = [];
  const hold = async (unshare: readonly string[], script: string, words: readonly string[] = []): Promise<number> => {
    const argv = ['--pdeathsig', 'KILL', 'unshare', ...unshare, '--fork', '--kill-child', '--', 'bash', '-c', script];
    const holder = spawn('setpriv', [...argv, 'bash', ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
    holders.push(holder);
    let said = '';
    holder.stderr.on('data', (bytes: Buffer) => (said += bytes.toString()));
    const first = await Promise.race([once(holder.stdout, 'data').then(String), once(holder, 'exit').then(() => '')]);
    if (!first.includes('ready')) throw new Error(`cannot make a machine: ${said}`);
    return Number(readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8').trim());
  };
  const bridge = await hold(
    ['--net', '--pid'],
    'ip link add br0 type bridge && ip link set br0 up && echo ready && sleep infinity',
  );
  const setUp = readFileSync(join(import.meta.dirname, 'set-up.sh'), 'utf8');
  const pids = new Map<string, number>();
  for (const [i, name] of names.entries()) {
    const unshare = ['--net', '--mount', '--uts', '--ipc', '--pid', '--mount-proc'];
    const pid = await hold(unshare, setUp, [name, project, node, exchange]);
    pids.set(name, pid);
    const cable = `ip link add to-${name} type veth peer name eth0 netns ${pid} && ip link set to-${name} master br0 up`;
    await execute('nsenter', ['--target', `${bridge}`, '--net', 'bash', '-c', cable]);
    const plug = `ip address add 10.77.0.${i + 1}/24 dev eth0 && ip link set eth0 up`;
    await execute('nsenter', ['--target', `${pid}`, '--net', 'bash', '-c', plug]);
  }
  const run = async (machine: string, script: string): Promise<string> => {
    const where = ['--target', `${pids.get(machine)}`, '--net', '--mount', '--uts', '--ipc', '--pid', '--wd=/root'];
    const environment = {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: '/root',
      NO_COLOR: '1',
      LANG: 'C.UTF-8',
    };
    const words = [...where, '--', 'bash', '-e', '-o', 'pipefail', '-c', script];
    const done = await execute('nsenter', words, { env: environment, maxBuffer: 1024 ** 3 });
    for (const { to, path, copy } of takeSent(exchange))
      await run(to, `install -D -m 0600 /mnt/exchange/${copy} ${path}`);
    return done.stdout;
  };
  return {
    run,
    async close() {
      const running = holders.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
      const ended = running.map((holder) => once(holder, 'exit'));
      for (const holder of running) holder.kill('SIGKILL');
      await Promise.all(ended);
      rmSync(exchange, { recursive: true, force: true });
    },
  };
}

/** What scp was given since the last call. */
function takeSent(exchange: string): { readonly to: string; readonly path: string; readonly copy: string }[] {
  const list = join(exchange, 'sent');
  if (!existsSync(list)) return [];
  const lines = readFileSync(list, 'utf8').trim().split('\n');
  rmSync(list);
  return lines.map((line) => {
    const [to = '', path = '', copy = ''] = line.split(' ');
    return { to, path, copy };
  });
}
