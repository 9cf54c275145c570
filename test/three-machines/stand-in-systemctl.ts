// For systemctl in the machines of the recipe, where no systemd runs: starts and stops the programs of units with their user, environment
// and folders. It does nothing about the rights that a unit takes from its program.

import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

const [verb = '', ...rest] = process.argv.slice(2);
const name = rest.at(-1) ?? '';
const pidFile = `/run/${name}.pid`;
const logFile = `/var/log/${name}.log`;

switch (`${verb} ${name}`) {
  case 'daemon-reload ':
    break;
  case 'restart postgresql': {
    const [version = ''] = readdirSync('/etc/postgresql');
    execFileSync('pg_ctlcluster', [version, 'main', 'restart'], { stdio: ['ignore', 'ignore', 'inherit'] });
    break;
  }
  default:
    if (verb === 'enable' || verb === 'start') await start();
    else if (verb === 'stop') await stop();
    else throw new Error(`systemctl ${verb} ${name} is not in the recipe`);
}

async function start(): Promise<void> {
  const unit = settingsOf(readFileSync(`/etc/systemd/system/${name}.service`, 'utf8'));
  const user = unit.get('User') ?? 'root';
  const folder = `/var/lib/${unit.get('StateDirectory')}`;
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  execFileSync('chown', [`${user}:`, folder]);
  execFileSync('chmod', [unit.get('StateDirectoryMode') ?? '0755', folder]);
  mkdirSync('/run/notify', { recursive: true });
  execFileSync('chmod', ['1777', '/run/notify']);
  const notified = `/run/notify/${name}`;
  rmSync(notified, { force: true });
  const environmentFile = unit.get('EnvironmentFile')?.replace(/^-/, '') ?? '';
  const log = openSync(logFile, 'a');
  const words = ['--reuid', user, '--regid', user, '--init-groups', '--', ...(unit.get('ExecStart') ?? '').split(' ')];
  const child = spawn('setpriv', words, {
    detached: true,
    cwd: '/',
    stdio: ['ignore', log, log],
    env: { PATH: process.env['PATH'], NOTIFY_SOCKET: notified, ...environmentIn(environmentFile) },
  });
  let ended = false;
  child.once('exit', () => (ended = true));
  while (!existsSync(notified)) {
    if (ended) throw new Error(`${name} did not start:\n${readFileSync(logFile, 'utf8')}`);
    await pause();
  }
  child.unref();
  writeFileSync(pidFile, `${child.pid}\n`);
}

async function stop(): Promise<void> {
  const pid = Number(readFileSync(pidFile, 'utf8'));
  process.kill(pid, 'SIGTERM');
  while (existsSync(`/proc/${pid}`)) await pause();
}

function settingsOf(unit: string): Map<string, string> {
  const lines = unit.split('\n').filter((line) => /^[A-Z]\w*=/.test(line));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
}

function environmentIn(path: string): Record<string, string> {
  return existsSync(path) ? Object.fromEntries(settingsOf(readFileSync(path, 'utf8'))) : {};
}

/** Neither a file nor a process of another parent tells of itself. */
function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20));
}
