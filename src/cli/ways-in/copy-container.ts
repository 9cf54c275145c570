// Copies between this machine and a container like `cp`: into an existing directory, or under the given name. An
// archive from a container is unpacked by tar(1) into a new directory, and moved to its place only then: no name from a
// container is used as a path here.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readdir, realpath, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, posix, resolve } from 'node:path';
import type { CopyLook, CopyRequest } from '../../api/access-protocol.ts';
import { errorCodes } from '../../api/errors.ts';
import { drained } from '../../base/drained.ts';
import { isRecord } from '../../base/is-record.ts';
import type { Cli } from '../cli.ts';
import { CommandError, exitCodes, usageError } from '../exit-codes.ts';
import { runInGuest } from './guest-command.ts';
import type { Session } from '../session.ts';
import { tarArchive } from './tar-archive.ts';

export interface ContainerCopy {
  readonly instance: string;
  readonly container?: string;
  /** In the container; relative paths start at its root. */
  readonly inside: string;
  readonly here: string;
  /** Including whole directories. */
  readonly recursive: boolean;
}

/** Throws `ApiError` with the reason `NeedsSsh` when the instance is not a group of containers; else `CommandError`. */
export async function copyToContainer(cli: Cli, session: Session, copy: ContainerCopy): Promise<void> {
  const source = resolve(copy.here);
  const into = insideOf(copy);
  const there = await lookAt(cli, session, { copy, path: into });
  const found = await stat(source).catch((cause: unknown) => {
    throw new CommandError(exitCodes.usage, `there is no file ${copy.here}`, { cause });
  });
  if (found.isDirectory()) needRecursive(copy, copy.here);
  const asDirectory = there === 'directory' || copy.inside.endsWith('/');
  const path = asDirectory ? into : posix.dirname(into);
  // Some engines would create it.
  const holds = path === into ? there : await lookAt(cli, session, { copy, path });
  if (holds !== 'directory')
    throw new CommandError(
      errorCodes.NotFound.exitCode,
      `there is no directory ${path} in instance "${copy.instance}"`,
    );
  const name = asDirectory ? basename(source) : posix.basename(into);
  const input = tarArchive(await realpath(source), name); // a link given by name stands for its target
  await run(cli, session, { copy, request: { copy: 'to', path }, input, take: () => {} });
}

export async function copyFromContainer(cli: Cli, session: Session, copy: ContainerCopy): Promise<void> {
  const source = insideOf(copy);
  const there = await lookAt(cli, session, { copy, path: source });
  if (there === 'nothing')
    throw new CommandError(errorCodes.NotFound.exitCode, `there is no ${source} in instance "${copy.instance}"`);
  if (there === 'directory') needRecursive(copy, source);
  const wanted = resolve(copy.here);
  const isDirectory = await stat(wanted).then(
    (seen) => seen.isDirectory(),
    () => false,
  );
  const parent = isDirectory ? wanted : dirname(wanted);
  const folder = await mkdtemp(join(parent, '.berth-cp-')).catch((cause: unknown) => {
    throw new CommandError(exitCodes.usage, `cannot write into ${parent}`, { cause });
  });
  try {
    await unpackInto(cli, session, { copy, path: source, folder });
    const [name, ...others] = await readdir(folder);
    if (name === undefined || others.length > 0)
      throw new CommandError(exitCodes.internal, `the container engine sent ${others.length + 1} files instead of one`);
    const target = isDirectory ? join(wanted, name) : wanted;
    await cp(join(folder, name), target, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Unpacked by tar(1), which never leaves its directory. A setuid file of root in the container must not become one
 * here.
 */
async function unpackInto(
  cli: Cli,
  session: Session,
  { copy, path, folder }: { readonly copy: ContainerCopy; readonly path: string; readonly folder: string },
): Promise<void> {
  const tar = spawn('tar', ['-x', '-f', '-', '-C', folder, '--no-same-owner', '--no-same-permissions'], {
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  let complaint = '';
  tar.stderr.on('data', (bytes: Buffer) => {
    complaint = (complaint + bytes.toString()).slice(0, 1000);
  });
  tar.stdin.on('error', () => {}); // the exit status says why
  const ended = once(tar, 'close');
  ended.catch(() => {}); // handled below
  try {
    await run(cli, session, {
      copy,
      request: { copy: 'from', path },
      async take(bytes) {
        if (!tar.stdin.write(bytes)) await drained(tar.stdin);
      },
    });
    tar.stdin.end();
    const [code] = await ended.catch((cause: unknown) => {
      throw new CommandError(exitCodes.internal, 'cannot start tar', { advice: 'install the package tar', cause });
    });
    if (code !== 0)
      throw new CommandError(exitCodes.badOutcome, `cannot unpack the archive that was received: ${complaint.trim()}`);
  } finally {
    tar.kill();
  }
}

async function lookAt(
  cli: Cli,
  session: Session,
  { copy, path }: { readonly copy: ContainerCopy; readonly path: string },
): Promise<CopyLook['kind']> {
  let text = '';
  await run(cli, session, {
    copy,
    request: { copy: 'look', path },
    take: (bytes) => {
      text = (text + Buffer.from(bytes).toString()).slice(0, 1000);
    },
  });
  const said: unknown = JSON.parse(text);
  const kind = isRecord(said) ? said['kind'] : undefined;
  if (kind === 'file' || kind === 'directory' || kind === 'nothing') return kind;
  return 'other';
}

async function run(
  cli: Cli,
  session: Session,
  {
    copy: { instance, container },
    request,
    input,
    take,
  }: {
    readonly copy: ContainerCopy;
    readonly request: CopyRequest;
    readonly input?: AsyncIterable<Uint8Array>;
    readonly take: (bytes: Uint8Array) => Promise<void> | void;
  },
): Promise<void> {
  let complaint = '';
  const code = await runInGuest(cli, session, {
    name: instance,
    request: { ...request, ...(container === undefined ? {} : { container }) },
    ...(input === undefined ? {} : { input }),
    take(stream, bytes) {
      if (stream === 'stdout') return take(bytes);
      complaint = (complaint + Buffer.from(bytes).toString()).slice(0, 2000);
    },
  });
  if (code === exitCodes.interrupted) throw new CommandError(exitCodes.interrupted, 'the copy was given up');
  if (code !== 0) throw new CommandError(exitCodes.badOutcome, `cannot copy: ${complaint.trim() || `code ${code}`}`);
}

function insideOf({ inside }: ContainerCopy): string {
  return posix.resolve('/', inside);
}

function needRecursive({ recursive }: ContainerCopy, path: string): void {
  if (!recursive) throw usageError(`${path} is a directory`, 'add -r to copy it with its contents');
}
