// What a failed git command means, by its exit and its words. Pure. The server of the repository writes some of these words: they are shortened,
// and decide nothing but which error is reported.

import { DriverError, type DriverErrorCode } from '../../host/driver-error.ts';
import type { GitResult } from './git-process.ts';
import type { FetchScope } from './git-settings.ts';

interface Meaning {
  readonly says: RegExp;
  readonly code: DriverErrorCode;
  readonly why: string;
}

const redirects = "its server redirects, and redirects are not followed; give the URL that the server's answer names";

/** The first that fits. Messages of git 2.37 to 2.50 with LC_ALL=C. */
const meanings: readonly Meaning[] = [
  {
    says: /curl_result = 23|File too large|died of signal 25/i,
    code: 'RepositoryRefused',
    why: 'it is larger than repositoryMiBMax of the agent allows, or the disk is full',
  },
  {
    says: /not our ref|unadvertised object|couldn't find remote ref|Unable to find [0-9a-f]{40}|Cannot obtain needed object|did not send all necessary objects|could not get object info|Not a valid object name/i,
    code: 'CommitNotFound',
    why: 'the server does not have this commit, or does not give it out (a force push removed it, or it belongs to another repository)',
  },
  {
    says: /returned error: 30[12378]|unable to update url base from redirection/i,
    code: 'RepositoryRefused',
    why: redirects,
  },
  {
    says: /could not read Username|Authentication failed|returned error: 40[13]/i,
    code: 'RepositoryUnavailable',
    why: 'the server wants another credential; set repositoryCredentials of the agent for this URL',
  },
  {
    says: /repository '.*' not found|returned error: 404|info\/refs not valid/i,
    code: 'RepositoryUnavailable',
    why: 'there is no such repository, or it is private; for a private one set repositoryCredentials of the agent for this URL',
  },
  { says: /No space left on device/i, code: 'DiskFull', why: "the disk of the agent's data directory is full" },
  {
    says: /out of memory|Cannot allocate memory|mmap failed/i,
    code: 'RepositoryRefused',
    why: 'git needed more memory for it than the agent allows',
  },
  {
    says: /fsck error|invalid path|invalid (index-pack output|object)|bad (object|tree)|index-pack (failed|died)|unpack-objects failed|is corrupt/i,
    code: 'RepositoryRefused',
    why: 'git refuses its objects',
  },
];

/** What to ask a server for that refuses the commit alone; undefined: nothing else would help. */
export function nextScope({ said }: Pick<GitResult, 'said'>): FetchScope | undefined {
  const own = wordsOfGit(said);
  if (/dumb http transport does not support shallow|Server does not support shallow/i.test(own)) return 'history';
  // Protocol v0, which web servers speak that do not pass on the header Git-Protocol.
  return /unadvertised object/i.test(own) ? 'everything' : undefined;
}

export function gitFailure(
  { exitCode, killedBy, said, missing }: Omit<GitResult, 'output'>,
  { url, commit }: { readonly url: string; readonly commit: string },
): DriverError {
  if (missing) return gitMissing();
  const own = wordsOfGit(said);
  const meaning = meanings.find(({ says }) => says.test(own));
  const what = meaning?.code === 'CommitNotFound' ? `commit ${commit} of ${url}` : url;
  const ended = killedBy === undefined ? `exit code ${exitCode ?? 'unknown'}` : `ended by ${killedBy}`;
  const tail = own === '' ? ended : own;
  if (meaning === undefined) return new DriverError('RepositoryUnavailable', `cannot fetch ${what}: ${tail}`);
  return new DriverError(meaning.code, `cannot fetch ${what}: ${meaning.why}: ${tail}`);
}

export function gitMissing(): DriverError {
  const message =
    'cannot fetch a repository: this host has no git; install it: apt-get install git, apk add git, or pkg install git';
  return new DriverError('GitMissing', message);
}

/** The lines that git itself wrote, as one; what the server said to be shown (`remote:`) is left out. */
function wordsOfGit(said: string): string {
  const lines = said
    .split(/[\r\n]+/)
    .filter((line) => /^(fatal|error|warning: unable|setpriv|unshare|prlimit):?/.test(line));
  return lines
    .map((line) => line.replaceAll(/[^\x20-\x7e]+/g, '?'))
    .join('; ')
    .slice(0, 400);
}
