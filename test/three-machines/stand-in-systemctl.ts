// For systemctl in the machines of the recipe, where no systemd runs: starts and stops the programs of units with their user, environment
// and folders. It does nothing about the rights that a unit takes from its program.

import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

const realSystemctl = '/usr/bin/systemctl.real';
const words = process.argv.slice(2).filter((word) => !word.startsWith('-'));
const [verb = ''] = words;
const names = words.slice(1).map((word) => word.replace(/\.service$/, ''));

if (`${verb} ${names[0]}` === 'restart postgresql') restartPostgres();
else {
  for (const name of names) {
    const pid = pidOf(name);
    if (verb === 'enable') enable(name);
    if (verb === 'stop' || (verb === 'try-restart' && pid !== undefined)) await stop(name);
    if (verb === 'enable' || verb === 'start' || (verb === 'try-restart' && pid !== undefined)) await start(name);
  }
  if (!['daemon-reload', 'enable', 'start', 'stop', 'try-restart'].includes(verb))
    throw new Error(`systemctl ${verb} is not in the recipes`);
}

function restartPostgres(): void {
  const [version = ''] = readdirSync('/etc/postgresql');
  execFileSync('pg_ctlcluster', [version, 'main', 'restart'], { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** Where the real one was kept, it makes the links: it can do that without a running systemd. */
function enable(name: string): void {
  if (!existsSync(realSystemctl)) return;
  execFileSync(realSystemctl, ['--root=/', 'enable', name], { stdio: 'ignore' });
}

/** undefined: it does not run. */
function pidOf(name: string): number | undefined {
  if (!existsSync(pidFileOf(name))) return undefined;
  const pid = Number(readFileSync(pidFileOf(name), 'utf8'));
  return existsSync(`/proc/${pid}`) ? pid : undefined;
}

function pidFileOf(name: string): string {
  return `/run/${name}.pid`;
}

function unitOf(name: string): Map<string, string> {
  const folder = ['/etc/systemd/system', '/usr/lib/systemd/system'].find((each) =>
    existsSync(`${each}/${name}.service`),
  );
  return settingsOf(readFileSync(`${folder}/${name}.service`, 'utf8'));
}

async function start(name: string): Promise<void> {
  const unit = unitOf(name);
  const logFile = `/var/log/${name}.log`;
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
  writeFileSync(pidFileOf(name), `${child.pid}\n`);
}

/** Its main process alone, as KillMode=process has it. */
async function stop(name: string): Promise<void> {
  const pid = pidOf(name);
  if (pid === undefined) return;
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
