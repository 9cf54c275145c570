// What git is told when the agent fetches a commit for a guest: environment, settings and words. Pure. Nothing of the agent's own environment
// or of the host's configuration reaches git, and no word holds a secret.

import { treePrefix } from '../guest/run-disk.ts';

/** Where one fetch keeps its files. All of it is removed with the fetch. */
export interface FetchFolders {
  /** HOME of git, and the only folder that git may write to. */
  readonly own: string;
  readonly repository: string;
  /** What `git init` copies into the repository: the attributes that keep every byte of the commit. */
  readonly template: string;
}

export interface GitSource {
  /** As `parseRepositoryUrl` normalizes it. */
  readonly url: string;
  /** HOST:PORT:ADDRESSES for curl; undefined: the URL has an address in place of a name. */
  readonly pin: string | undefined;
  /** A user name and password are written to this descriptor of git; undefined: there are none. */
  readonly credentialDescriptor: number | undefined;
  /** PEM file of the authorities that https: servers must be signed by; undefined: the system's. */
  readonly authorities: string | undefined;
}

/** Slower than this for so long is given up: a server that drips would hold a fetch until its time limit. */
const slow = { bytesPerSecond: 1000, seconds: 60 } as const;

/** Attributes of the repository itself would remove files (export-ignore) or change bytes; these come first and win. */
export const exactAttributes =
  '* -export-ignore -export-subst -text -eol -ident -filter -working-tree-encoding -crlf -delta\n';

export function gitEnvironment({ own, repository }: FetchFolders): Readonly<Record<string, string>> {
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    LC_ALL: 'C', // messages are matched
    HOME: own,
    TMPDIR: own,
    GIT_DIR: repository,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ALLOW_PROTOCOL: 'http:https',
    GIT_NO_LAZY_FETCH: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    MALLOC_ARENA_MAX: '2', // each arena takes 128 MiB of the addresses that are limited
  };
}

/** The same for every call. */
const settings: Readonly<Record<string, string>> = {
  'core.hooksPath': '/dev/null',
  'core.attributesFile': '/dev/null',
  'core.fsmonitor': 'false',
  'core.autocrlf': 'false',
  'core.fsync': 'none', // a crash begins the fetch again
  // Larger files are streamed; smaller ones and what deltas need must fit into the memory limit.
  'core.bigFileThreshold': '32m',
  'core.packedGitWindowSize': '32m',
  'core.packedGitLimit': '256m',
  'core.deltaBaseCacheLimit': '64m',
  'pack.threads': '2',
  'protocol.allow': 'never',
  'protocol.http.allow': 'always',
  'protocol.https.allow': 'always',
  'http.followRedirects': 'false',
  'http.lowSpeedLimit': String(slow.bytesPerSecond),
  'http.lowSpeedTime': String(slow.seconds),
  'transfer.fsckObjects': 'true',
  'transfer.bundleURI': 'false',
  'fetch.fsckObjects': 'true',
  'fetch.recurseSubmodules': 'false',
  'fetch.unpackLimit': '1', // always one pack, whose size the file limit bounds
  'fetch.writeCommitGraph': 'false',
  'gc.auto': '0',
  'maintenance.auto': 'false',
  'credential.helper': '',
  'tar.umask': '0022',
};

function withSettings(more: Readonly<Record<string, string>>, words: readonly string[]): string[] {
  const all = [...Object.entries(settings), ...Object.entries(more)];
  return [...all.flatMap(([name, value]) => ['-c', `${name}=${value}`]), ...words];
}

/** A commit of 64 digits is in a repository of SHA-256. */
export function initArguments({ template, repository }: FetchFolders, commit: string): string[] {
  const format = commit.length === 64 ? 'sha256' : 'sha1';
  const words = ['init', '--quiet', '--bare', `--template=${template}`, `--object-format=${format}`, '--', repository];
  return withSettings({}, words);
}

/**
 * `commit`: without its history, which a server of plain files cannot leave out. `history`: with it. `everything`: all branches, tags and
 * pull requests, from a server that gives out no commit by its hash. Never a filter: git restarts itself without end on some servers.
 */
export type FetchScope = 'commit' | 'history' | 'everything';

export function fetchArguments(
  { url, pin, credentialDescriptor, authorities }: GitSource,
  { commit, scope }: { readonly commit: string; readonly scope: FetchScope },
): string[] {
  const more = {
    ...(pin === undefined ? {} : { 'http.curloptResolve': pin }),
    ...(authorities === undefined ? {} : { 'http.sslCAInfo': authorities }),
    ...(credentialDescriptor === undefined ? {} : credentialSetting(url, credentialDescriptor)),
  };
  const depth = scope === 'commit' ? ['--depth=1'] : [];
  const words = ['fetch', '--quiet', '--no-tags', '--no-write-fetch-head', '--no-recurse-submodules', ...depth];
  return withSettings(more, [...words, '--', url, scope === 'everything' ? '+refs/*:refs/all/*' : commit]);
}

export function typeArguments(commit: string): string[] {
  return withSettings({}, ['cat-file', '-t', commit]);
}

/** Every file and directory, as `MODE TYPE HASH SIZE<tab>PATH<nul>`, without reading them into memory. */
export function listArguments(commit: string): string[] {
  return withSettings({}, ['ls-tree', '-r', '-t', '-l', '-z', '--full-tree', commit]);
}

export function archiveArguments(commit: string): string[] {
  return withSettings({}, ['archive', '--format=tar', `--prefix=${treePrefix}`, commit]);
}

/** For this server only. The descriptor can be read once, so the second question of the same fetch has no answer. */
function credentialSetting(url: string, descriptor: number): Record<string, string> {
  const { protocol, host } = new URL(url);
  return {
    [`credential.${protocol}//${host}.helper`]: `!answer() { test "$1" != get || cat <&${descriptor}; }; answer`,
  };
}
