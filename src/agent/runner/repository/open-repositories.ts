// Opens the way to repositories for an agent: checks its settings, removes what earlier fetches left, and lets a few fetches run at once, each
// with a user of its own. git is looked for when the first commit is fetched: a host without jobs needs none.

import { lookup } from 'node:dns/promises';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import type { RunRepository } from '../../../api/resources/run.ts';
import type { Clock } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import { certificatesAt } from '../../../base/system.ts';
import { makeFolder } from '../../agent-folders.ts';
import { closedFolder } from '../../host/guest-user.ts';
import { runTool } from '../../host/run-tool.ts';
import { parseCredentialRules } from './credentials.ts';
import { type FetchHost, fetchCommit } from './fetch-commit.ts';
import { gitMissing } from './git-failure.ts';
import { chooseGitJail, type GitJail } from './git-jail.ts';
import { judgeGitVersion } from './git-version.ts';
import type { RepositoryConfig } from './repository-config.ts';
import { parseRepositoryNetworks } from './repository-networks.ts';
import { Slots } from './slots.ts';

/** Writes the files of the commit to a tar, each path below `work/`. Throws `DriverError`; then there is no tar. */
export type FetchRepository = (repo: RunRepository, toTar: string, signal: AbortSignal) => Promise<void>;

export interface RepositoriesOptions {
  readonly config: RepositoryConfig;
  /** The agent's alone; made when it is not there. */
  readonly directory: string;
  /** The agent's own. */
  readonly userId: number;
  /** Numbers of users that fetches run as, as many as may run at once. Empty: as the agent's user. */
  readonly users: readonly number[];
  /** PEM file of authorities that are trusted besides those that Node trusts; default: git trusts those of the system. */
  readonly authorities?: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly kill: FetchHost['kill'];
  /** Default: the system's resolver. */
  readonly lookup?: FetchHost['lookup'];
  /** Default: the best that this host can do. */
  readonly chooseJail?: typeof chooseGitJail;
}

/** Fetches at once of an agent that has no users for them. */
const concurrencyDefault = 4;
/** Above the largest repositories that are known. */
const entriesMax = 1_000_000;
/** For git and its helpers, each. */
const memoryBytesMax = 2 * 1024 ** 3;
const bytesPerMiB = 1024 ** 2;

/** Throws `InvalidRequest` for settings that say nothing. */
export async function openRepositories(options: RepositoriesOptions): Promise<FetchRepository> {
  const { directory, config, users, clock, log } = options;
  const networks = parseRepositoryNetworks(config.repositoryNetworks);
  const credentials = parseCredentialRules(config.repositoryCredentials);
  await makeFolder(directory, { passable: users.length > 0 });
  for (const name of await readdir(directory)) await rm(join(directory, name), { recursive: true, force: true });
  const none = Array.from({ length: concurrencyDefault }, () => undefined);
  const slots = new Slots<number | undefined>(users.length === 0 ? none : users);
  let looked: Promise<GitJail> | undefined;
  const shared = {
    scratch: directory,
    networks,
    credentials,
    limits: {
      timeMsMax: config.repositoryMsMax,
      bytesMax: config.repositoryMiBMax * bytesPerMiB,
      entriesMax,
      memoryBytesMax,
    },
    authorities: options.authorities === undefined ? undefined : await withOwn(options.authorities),
    clock,
    kill: options.kill,
    lookup: options.lookup ?? ((host: string) => lookup(host, { all: true })),
  };
  return async (repo, toTar, signal) => {
    looked ??= lookAtHost(options).catch((error: unknown) => {
      looked = undefined; // it may be installed meanwhile
      throw error;
    });
    const jail = await looked;
    await slots.run(signal, async (own) => {
      const user = await userFor(own, { directory, log });
      await fetchCommit({ repo, toTar, signal }, { ...shared, jail, user });
    });
  };
}

/** As for the agent's own connections. */
async function withOwn(path: string): Promise<string> {
  return [...rootCertificates, ...(await certificatesAt(path))].join('\n');
}

async function lookAtHost({ userId, clock, log, chooseJail = chooseGitJail }: RepositoriesOptions): Promise<GitJail> {
  const result = await runTool(clock, { program: 'git', arguments: ['--version'], timeoutMs: 10_000 });
  if (!result.ok && result.reason === 'missing') throw gitMissing();
  if (!result.ok) throw new DriverError('GitMissing', `git of this host does not work: ${result.output}`);
  const version = judgeGitVersion(result.output);
  if (!version.usable) throw new DriverError('GitMissing', `cannot fetch a repository: ${version.why}`);
  if (version.advice !== undefined) log.warn(version.advice);
  const jail = await chooseJail({ userId });
  if (jail.fault !== undefined) log.warn('git is confined less than it could be', { reason: jail.fault });
  return jail;
}

/** A user that cannot pass to its own folder is of no use. */
async function userFor(
  user: number | undefined,
  { directory, log }: { readonly directory: string; readonly log: Logger },
): Promise<number | undefined> {
  if (user === undefined) return undefined;
  const closed = await closedFolder(directory).catch(describeError);
  if (closed === undefined) return user;
  log.warn("git runs as the agent's user", { reason: `${closed} is closed to others: chmod o+x ${closed}` });
  return undefined;
}
