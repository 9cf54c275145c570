// For tests: one fetch as an agent makes it, and what must be true after each: nothing is left in its folder, and no tar if it failed.

import { existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { silentLogger } from '../../../base/log.ts';
import { system, systemClock } from '../../../base/system.ts';
import { DriverError } from '../../host/driver-error.ts';
import { openRepositories, type RepositoriesOptions } from './open-repositories.ts';
import type { RepositoryConfig } from './repository-config.ts';

interface Outcome {
  /** Of the `DriverError`, or `none`. */
  readonly code: string;
  readonly message: string;
  readonly tar: string;
}

interface Settings
  extends Partial<RepositoryConfig>,
    Pick<Partial<RepositoriesOptions>, 'lookup' | 'users' | 'authorities' | 'chooseJail'> {
  readonly signal?: AbortSignal;
}

/** In a folder of its own below `root`. */
export async function fetching(
  root: string,
  repo: { readonly url: string; readonly commit: string },
  { signal = new AbortController().signal, lookup, users, authorities, chooseJail, ...config }: Settings = {},
): Promise<Outcome> {
  const tar = join(mkdtempSync(join(root, 'tar-')), 'commit.tar');
  const directory = join(root, `scratch-${readdirSync(root).length}`);
  const fetch = await openRepositories({
    config: {
      repositoryNetworks: ['private'],
      repositoryCredentials: [],
      repositoryMiBMax: 64,
      repositoryMsMax: 60_000,
      ...config,
    },
    directory,
    userId: system.userId(),
    users: users ?? (system.userId() === 0 ? [fetchUser] : []),
    clock: systemClock,
    log: silentLogger,
    kill: system.signal,
    ...(lookup === undefined ? {} : { lookup }),
    ...(chooseJail === undefined ? {} : { chooseJail }),
    ...(authorities === undefined ? {} : { authorities }),
  });
  try {
    await fetch(repo, tar, signal);
    return { code: 'none', message: '', tar };
  } catch (error) {
    if (!(error instanceof DriverError)) throw error;
    expect(existsSync(tar)).toBe(false);
    return { code: error.code, message: error.message, tar };
  } finally {
    expect(readdirSync(directory)).toEqual([]);
  }
}

export const fetchUser = 1_900_065_534;
