// The control plane as users install it, in a process of its own, so that what is measured shares no event loop with the load.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hostTokenOf } from '../src/server/http/tokens.ts';

const project = fileURLToPath(new URL('..', import.meta.url));

/** The program of the package that `npm run build` makes. */
export const program = join(project, 'dist/bin/berth.js');

export interface ServerProcess {
  readonly url: string;
  readonly operatorToken: string;
  readonly pid: number;
  hostToken(name: string): string;
  close(): Promise<void>;
  /** As a crash. */
  kill(): Promise<void>;
}

export interface ServerOptions {
  readonly env?: Record<string, string>;
  /** For profiles. */
  readonly nodeArguments?: readonly string[];
  readonly listen?: string;
}

export function buildProduct(): void {
  execFileSync(process.execPath, [join(project, 'scripts/build.ts')], { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** A server with an SQLite store in `directory`, unless `env` names another. The product must have been built. It never outlives the bench. */
export async function startServerProcess(
  directory: string,
  { env = {}, nodeArguments = [], listen = '127.0.0.1:0' }: ServerOptions = {},
): Promise<ServerProcess> {
  const words = ['server', '--listen', listen, '--data-dir', directory, '--log-level', 'warn'];
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', process.execPath, ...nodeArguments, program, ...words], {
    stdio: ['ignore', 'inherit', 'pipe'],
    env: { ...process.env, ...env },
  });
  const url = await new Promise<string>((resolve, reject) => {
    let said = '';
    child.stderr.on('data', (bytes: Buffer) => {
      said += bytes.toString();
      const listens = /listens on (\S+)/.exec(said)?.[1];
      if (listens !== undefined) resolve(listens);
    });
    child.once('exit', () => reject(new Error(`the server ended: ${said}`)));
  });
  const operatorToken = (await readFile(join(directory, 'operator.token'), 'utf8')).trim();
  const secret = Buffer.from((await readFile(join(directory, 'secret'), 'utf8')).trim(), 'base64url');
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  };
  return {
    url,
    operatorToken,
    pid: child.pid ?? 0,
    hostToken: (name) => hostTokenOf(secret, name, 0),
    close: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  };
}
