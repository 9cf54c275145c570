// Runs one program of an image build, never through a shell, and says what it said when it fails.

import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { system } from '../../../base/system.ts';

export interface BuildContext {
  /** Private to this build and removed after it. */
  readonly workDirectory: string;
  /** Comes before each program and its arguments: what it mounts or starts ends with it. */
  readonly jail: readonly string[];
  readonly signal: AbortSignal;
  readonly tell: (step: string) => void;
}

export interface BuildPackage {
  readonly name: string;
  /** The program that proves it is there. */
  readonly program: string;
  readonly reason: string;
}

export class ImageBuildError extends Error {
  override name = 'ImageBuildError';
}

const programFolders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
/** Fixed, so that of the user's environment a build depends only on the route to the package server. */
const buildEnvironment = {
  PATH: programFolders.join(':'),
  LC_ALL: 'C.UTF-8',
  HOME: '/root',
  DEBIAN_FRONTEND: 'noninteractive',
  SOURCE_DATE_EPOCH: '1700000000',
  MTOOLS_SKIP_CHECK: '1',
} as const;

/** Runs to the end; returns what was written to standard output. Throws `ImageBuildError` with the last lines otherwise. */
export function runStep(context: BuildContext, program: string, parameters: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const [first = program, ...words] = [...context.jail, program, ...parameters];
    const child = spawn(first, words, {
      cwd: context.workDirectory,
      env: buildEnvironment,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // a group of its own, so that its own children end with it
    });
    let output = '';
    let said = '';
    const endGroup = (): void => {
      if (child.pid !== undefined) system.signal(-child.pid, 'SIGKILL');
    };
    context.signal.addEventListener('abort', endGroup, { once: true });
    if (context.signal.aborted) endGroup();
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      said = (said + chunk.toString()).slice(-4000);
    });
    child.stderr.on('data', (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-4000);
    });
    child.once('error', (error) =>
      reject(new ImageBuildError(`cannot run ${program}: ${error.message}`, { cause: error })),
    );
    const givenUp = (): void => {
      if (context.signal.aborted) reject(new ImageBuildError('the build was given up'));
    };
    // What left the group, where there is no jail, holds our ends of its output, and is not waited for.
    child.once('exit', givenUp);
    child.once('close', (code, killed) => {
      context.signal.removeEventListener('abort', endGroup);
      if (code === 0) return resolve(output);
      if (context.signal.aborted) return givenUp();
      const lines = said.trim().split('\n').slice(-8).join('\n  ');
      reject(new ImageBuildError(`${program} ended with ${code ?? killed}:\n  ${lines}`));
    });
  });
}

/** Throws `ImageBuildError` that names what is missing and the line that installs it. */
export async function requirePackages(name: string, packages: readonly BuildPackage[]): Promise<void> {
  const missing: BuildPackage[] = [];
  for (const one of packages) if (!(await isInstalled(one.program))) missing.push(one);
  if (missing.length === 0) return;
  const list = missing.map(({ program, reason }) => `${program} (${reason})`).join(', ');
  throw new ImageBuildError(
    `cannot build image "${name}": missing ${list}; install with: apt-get install --no-install-recommends ${[...new Set(missing.map((one) => one.name))].join(' ')}`,
  );
}

async function isInstalled(program: string): Promise<boolean> {
  const places = program.startsWith('/') ? [program] : programFolders.map((folder) => join(folder, program));
  for (const place of places) {
    const found = await access(place, constants.X_OK).then(
      () => true,
      () =>
        access(place, constants.R_OK).then(
          () => program.startsWith('/'),
          () => false,
        ),
    );
    if (found) return true;
  }
  return false;
}
