// Follows docs/debian.md on a machine of namespaces: the package that `npm run build:deb` builds is installed, upgraded, removed and purged with
// apt-get, and its services run. systemctl is a stand-in, because no systemd runs there; the driver is fake.

import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pageCommands } from '../page-commands.ts';

const project = resolve(import.meta.dirname, '../..');

function whyNot(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root may make machines of namespaces';
  // Mount namespaces do not work in a chroot, because its root is no mount point.
  return spawnSync('unshare', ['--mount', 'true']).status === 0 ? undefined : 'there are no mount namespaces here';
}

/** The commands below a heading of the page. */
const commandsOf = (heading: string): string => pageCommands({ page: 'debian.md', heading, prompt: '#' }).join('\n');

const reason = whyNot();
describe.skipIf(reason !== undefined)(`the Debian package${reason ? ` (${reason})` : ''}`, () => {
  let directory: string;
  let holder: ChildProcess;
  let pid: string;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'berth-package-'));
    const build = ['scripts/build-deb.ts', '--compression', 'none', '--out', directory];
    execFileSync(process.execPath, build, { cwd: project, stdio: ['ignore', 'ignore', 'inherit'] });
    const { version } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
    const architecture = execFileSync('dpkg', ['--print-architecture'], { encoding: 'utf8' }).trim();
    const built = join(directory, `berth_${version}-1_${architecture}.deb`);
    packNext(built, join(directory, 'next'), join(directory, 'berth_0.2.0-1_amd64.deb'));
    if (built !== join(directory, 'berth_0.1.0-1_amd64.deb'))
      execFileSync('mv', [built, join(directory, 'berth_0.1.0-1_amd64.deb')]);

    const words = ['--pdeathsig', 'KILL', 'unshare', '--net', '--mount', '--uts', '--ipc', '--pid', '--mount-proc'];
    const script = [join(import.meta.dirname, 'set-up.sh'), directory, project, nodeInMachine()];
    holder = spawn('setpriv', [...words, '--fork', '--kill-child', '--', 'bash', ...script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const first = await Promise.race([
      once(holder.stdout!, 'data').then(String), // stdio above makes it a pipe
      once(holder, 'exit').then(() => 'ended'),
    ]);
    if (!first.includes('ready')) throw new Error('cannot make a machine; the lines above say why');
    pid = readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8').trim();
  });
  afterAll(async () => {
    const ended = holder === undefined ? undefined : once(holder, 'exit');
    holder?.kill('SIGKILL');
    await ended;
    rmSync(directory, { recursive: true, force: true });
  });

  const run = async (script: string): Promise<string> => {
    const where = ['--target', pid, '--net', '--mount', '--uts', '--ipc', '--pid', '--root', `--wdns=${directory}`];
    const done = await promisify(execFile)('nsenter', [...where, '--', 'bash', '-e', '-o', 'pipefail', '-c', script], {
      env: {
        PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
        HOME: '/root',
        NO_COLOR: '1',
        LANG: 'C.UTF-8',
        DEBIAN_FRONTEND: 'noninteractive',
      },
    });
    return done.stdout + done.stderr;
  };

  it('is installed, with manual pages, completion and a user of its own', async () => {
    expect(await run(commandsOf('Build and install'))).toContain('0.1.0');
    expect(await run('id -un berth; stat -c "%U %a" /var/lib/berth/server')).toBe('berth\nberth 700\n');
    expect(await run('COLUMNS=80 man berth-host')).toContain('berth host drain [options] <host>');
    expect(await run('. /usr/share/bash-completion/completions/berth; complete -p berth')).toContain('berth');
    expect(await run('cat /proc/$$/root/usr/bin/berth')).toContain('/usr/lib/berth/bin/node');
    // Neither service is enabled.
    expect(await run('ls /etc/systemd/system/multi-user.target.wants')).not.toContain('berth');
  });

  it('has a server that starts with the configuration that was edited', async () => {
    await run(commandsOf('A server'));
    expect(await run('ps -o user= -p $(cat /run/berth-server.pid)')).toBe('berth\n');
    expect(await run('ls /etc/systemd/system/multi-user.target.wants')).toContain('berth-server.service');
  });

  it('has an agent that joins and runs a guest', async () => {
    await run(`sed -i 's/^drivers: .*/drivers: [fake]/' /etc/berth/agent.yaml`);
    expect(await run(commandsOf('A host'))).toMatch(/^debian +Ready/m);
    await run('berth image add small --source https://images.example/small.qcow2');
    await run('berth run small --name hello --cpus 1 --memory 128MiB --wait');
  });

  it('is upgraded: services are restarted, edited configuration is kept, the guest runs', async () => {
    const pids = await run('cat /run/berth-server.pid /run/berth-agent.pid');
    await run(commandsOf('Upgrade').replace('apt-get', 'apt-get -o Dpkg::Options::=--force-confold'));
    expect(await run("dpkg-query -W -f '${Version}' berth")).toBe('0.2.0-1');
    const after = (await run('cat /run/berth-server.pid /run/berth-agent.pid')).split('\n');
    expect(after.filter((each) => each !== '' && pids.includes(each))).toEqual([]);
    expect(await run('cat /etc/berth/server.yaml')).toContain('listen: 0.0.0.0:7070');
    expect(await run('cat /etc/berth/agent.yaml')).toContain('drivers: [fake]');
    expect(await run('cat /etc/berth/agent.yaml.dpkg-dist')).toContain('drivers: [qemu]');
    await expect.poll(() => run('berth host ls')).toMatch(/^debian +Ready/m);
    await expect.poll(() => run('berth ps'), { timeout: 30_000 }).toMatch(/^hello +Running/m);
  });

  it('is removed and purged, and keeps what it did not bring', async () => {
    await run('echo key > /etc/berth/master.key');
    const [remove = '', purge = ''] = commandsOf('Remove').split('\n');
    await run(remove);
    expect(
      await run('ls /proc/$(cat /run/berth-server.pid) /proc/$(cat /run/berth-agent.pid) 2>/dev/null || true'),
    ).toBe('');
    expect(await run('ls /usr/lib/berth /usr/bin/berth 2>/dev/null || true')).toBe('');
    expect(await run('cat /etc/berth/server.yaml')).toContain('listen: 0.0.0.0:7070');
    expect(await run(purge)).toContain('/var/lib/berth has data and stays');
    expect(await run('ls /etc/berth')).toBe('master.key\n');
    expect(await run('ls /var/lib/berth/server')).toContain('berth.db');
    expect(await run('ls -A /etc/systemd/system | grep berth || true')).toBe('');
  });
});

/** The checkout is mounted elsewhere in the machine. */
function nodeInMachine(): string {
  return process.execPath.startsWith(`${project}/`)
    ? `/mnt/berth${process.execPath.slice(project.length)}`
    : process.execPath;
}

/** The same package as a later version, with another comment in a configuration file. */
function packNext(built: string, root: string, path: string): void {
  mkdirSync(root);
  execFileSync('dpkg-deb', ['--raw-extract', built, root]);
  const control = join(root, 'DEBIAN/control');
  writeFileSync(control, readFileSync(control, 'utf8').replace(/^Version: .*$/m, 'Version: 0.2.0-1'));
  appendFileSync(join(root, 'etc/berth/agent.yaml'), '\n# Later.\n');
  execFileSync('dpkg-deb', ['--root-owner-group', '-Znone', '--build', root, path], { stdio: 'ignore' });
  rmSync(root, { recursive: true });
}
