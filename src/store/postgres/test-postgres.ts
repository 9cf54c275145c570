// A PostgreSQL server for a test: in a temporary directory, on a free port, with a real disk. It never outlives the
// process that started it.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client } from 'pg';
import { freePort } from '../../base/test-ports.ts';

export interface TestPostgres {
  /** The part of a store URL after `postgres:`; each schema is a separate store. */
  rest(schema: string, as?: { readonly user?: string; readonly port?: number; readonly database?: string }): string;
  readonly port: number;
  /** As the superuser. */
  sql(text: string, values?: unknown[]): Promise<unknown[][]>;
  /** Starts it again, with additional settings. */
  start(settings?: readonly string[]): Promise<void>;
  /** `immediate`: like a crash. */
  stop(mode: 'fast' | 'immediate'): Promise<void>;
  readonly folder: string;
  dispose(): Promise<void>;
}

/** Where Debian installs the newest version; null: not installed, which the tests report. */
export const postgresPrograms: string | null = newestOf('/usr/lib/postgresql');

export async function startPostgres(): Promise<TestPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-postgres-'));
  const data = join(folder, 'data');
  const port = await freePort();
  // PostgreSQL refuses to run as root; Debian's package creates the user.
  const asUser = process.getuid?.() === 0 ? ['--reuid=postgres', '--regid=postgres', '--init-groups'] : [];
  const run = (program: string): string[] => [...asUser, '--pdeathsig=QUIT', join(postgresPrograms ?? '', program)];
  if (asUser.length > 0) giveTo('postgres', folder);
  execFileSync(
    'setpriv',
    [...run('initdb'), '-D', data, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--locale=C.UTF-8'],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  let server: ChildProcess | null = null;

  const start = async (settings: readonly string[] = []): Promise<void> => {
    const args = [
      '-D',
      data,
      '-p',
      `${port}`,
      '-k',
      folder,
      '-h',
      '127.0.0.1',
      ...settings.flatMap((one) => ['-c', one]),
    ];
    const child = spawn('setpriv', [...run('postgres'), ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
    server = child;
    let log = '';
    for await (const line of createInterface({ input: child.stderr })) {
      log += `${line}\n`;
      if (line.includes('database system is ready to accept')) break;
    }
    if (!log.includes('is ready to accept')) throw new Error(`PostgreSQL did not start:\n${log}`);
    child.stderr.resume();
  };
  const stop = async (mode: 'fast' | 'immediate'): Promise<void> => {
    const child = server;
    server = null;
    if (!child || child.exitCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
    await exited;
  };
  await start();
  return {
    folder,
    start,
    stop,
    port,
    rest: (schema, as = {}) =>
      `//${as.user ?? 'postgres'}@127.0.0.1:${as.port ?? port}/${as.database ?? 'postgres'}?schema=${schema}`,
    async sql(text, values) {
      const client = new Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' });
      await client.connect();
      try {
        return (await client.query<unknown[]>({ text, rowMode: 'array', ...(values ? { values } : {}) })).rows;
      } finally {
        await client.end();
      }
    },
    async dispose() {
      await stop('immediate');
      rmSync(folder, { recursive: true });
    },
  };
}

function newestOf(folder: string): string | null {
  if (!existsSync(folder)) return null;
  const versions = readdirSync(folder).sort((a, b) => Number(b) - Number(a));
  const programs = versions.map((version) => join(folder, version, 'bin'));
  return programs.find((path) => existsSync(join(path, 'initdb')) && existsSync(join(path, 'postgres'))) ?? null;
}

export function giveTo(user: string, path: string): void {
  const [, , uid, gid] =
    readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .find((line) => line.startsWith(`${user}:`))
      ?.split(':') ?? [];
  chownSync(path, Number(uid), Number(gid));
  chmodSync(path, 0o755);
}
