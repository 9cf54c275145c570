// Fetches one commit of a repository with the host's git and writes the files of the commit to a tar, byte for byte. Nothing is checked out or
// unpacked on this host, no hook runs, and all that git wrote is removed afterwards, whatever happened.
//
//   check URL and addresses ─► init --bare ─► fetch URL SHA ─► cat-file -t ─► ls-tree ─► archive ─► tar
//                                                  └─ refused by an old server, or one of plain files: again, with more

import { chmod, chown, mkdir, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { RunRepository } from '../../../api/resources/run.ts';
import { describeError } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import { checkTree } from './check-tree.ts';
import { chooseCredential, type ParsedRule, readCredential } from './credentials.ts';
import { FetchLimit, type FetchLimits } from './fetch-limit.ts';
import { gitFailure, nextScope } from './git-failure.ts';
import type { GitJail } from './git-jail.ts';
import { credentialDescriptor, type GitHands, type GitResult, runGit } from './git-process.ts';
import {
  archiveArguments,
  exactAttributes,
  fetchArguments,
  type FetchFolders,
  gitEnvironment,
  type GitSource,
  initArguments,
  listArguments,
  typeArguments,
} from './git-settings.ts';
import type { RepositoryNetworks } from './repository-networks.ts';
import { parseRepositoryUrl, type RepositoryUrl } from './repository-url.ts';
import { passTar } from './tar-gate.ts';

interface FetchCall {
  readonly repo: RunRepository;
  /** Is written, or removed when the fetch fails. */
  readonly toTar: string;
  readonly signal: AbortSignal;
}

export interface FetchHost extends GitHands {
  /** A folder of the agent; each fetch has one of its own in it. */
  readonly scratch: string;
  readonly networks: RepositoryNetworks;
  readonly credentials: readonly ParsedRule[];
  readonly limits: FetchLimits;
  readonly jail: GitJail;
  /** git runs as this user; undefined: as the agent. */
  readonly user: number | undefined;
  /** PEM of the authorities that https: servers must be signed by; undefined: the system's. */
  readonly authorities: string | undefined;
  readonly lookup: (host: string) => Promise<readonly { readonly address: string }[]>;
}

/** Throws `DriverError`: RepositoryRefused, RepositoryUnavailable, CommitNotFound, GitMissing, DiskFull or Aborted. */
export async function fetchCommit(call: FetchCall, host: FetchHost): Promise<void> {
  const { repo, signal, toTar } = call;
  if (!/^([0-9a-f]{40}|[0-9a-f]{64})$/.test(repo.commit))
    throw new DriverError('RepositoryRefused', `cannot fetch "${repo.commit}": it is no full hash of a commit`);
  const url = parseRepositoryUrl(repo.url);
  const root = await mkdtemp(join(host.scratch, 'fetch-'));
  const limit = new FetchLimit({ what: url.href, folder: join(root, 'own'), limits: host.limits, signal }, host.clock);
  try {
    const folders = await makeFolders(root, host.user);
    const session = new FetchSession({ url, commit: repo.commit, folders, root, signal: limit.signal }, host);
    await session.download();
    await session.checkTree();
    await session.writeTar(toTar);
  } catch (error) {
    await rm(toTar, { force: true });
    throw error;
  } finally {
    await limit.stop();
    await rm(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

/** The user of git owns one folder only; what git reads of ours it cannot change. */
async function makeFolders(root: string, user: number | undefined): Promise<FetchFolders> {
  const own = join(root, 'own');
  const template = join(root, 'template');
  if (user !== undefined) await chmod(root, 0o711);
  await mkdir(own, { mode: 0o700 });
  if (user !== undefined) await chown(own, user, user);
  await mkdir(join(template, 'info'), { recursive: true });
  await writeFile(join(template, 'info', 'attributes'), exactAttributes);
  for (const folder of [template, join(template, 'info')]) await chmod(folder, 0o755);
  await chmod(join(template, 'info', 'attributes'), 0o644);
  return { own, template, repository: join(own, 'repository') };
}

interface Session {
  readonly url: RepositoryUrl;
  readonly commit: string;
  readonly folders: FetchFolders;
  readonly root: string;
  readonly signal: AbortSignal;
}

type Consume = (output: Readable) => Promise<void>;

class FetchSession {
  readonly #session: Session;
  readonly #host: FetchHost;

  constructor(session: Session, host: FetchHost) {
    this.#session = session;
    this.#host = host;
  }

  async download(): Promise<void> {
    const { url, commit, folders } = this.#session;
    const { credentials, authorities, networks, lookup } = this.#host;
    const rule = chooseCredential(credentials, url);
    const secret = rule === undefined ? undefined : await readCredential(rule);
    const addresses = await unlessAborted(this.#session.signal, resolve(url, { networks, lookup }));
    const source: GitSource = {
      url: url.href,
      pin: pinOf(url, addresses),
      credentialDescriptor: secret === undefined ? undefined : credentialDescriptor,
      authorities: await this.#authorities(authorities),
    };
    await this.#must(initArguments(folders, commit));
    const alone = await this.#git(fetchArguments(source, { commit, scope: 'commit' }), secret);
    if (alone.exitCode !== 0) {
      const scope = nextScope(alone);
      if (scope === undefined) throw this.#failure(alone);
      await this.#must(fetchArguments(source, { commit, scope }), secret);
    }
    const { output: type } = await this.#must(typeArguments(commit));
    if (type !== 'commit')
      throw new DriverError('CommitNotFound', `cannot fetch ${commit} of ${url.href}: it is a ${type}, not a commit`);
  }

  /** git would first read a tree of a billion names into memory. */
  async checkTree(): Promise<void> {
    const { url, commit } = this.#session;
    const { bytesMax, entriesMax } = this.#host.limits;
    await this.#must(listArguments(commit), undefined, (output) =>
      checkTree(output, { bytesMax, entriesMax }, url.href),
    );
  }

  async writeTar(path: string): Promise<void> {
    const { url, commit } = this.#session;
    const { bytesMax, entriesMax } = this.#host.limits;
    const file = await open(path, 'w', 0o600);
    try {
      await this.#must(archiveArguments(commit), undefined, async (output) => {
        for await (const piece of inLargePieces(passTar(output, { bytesMax, entriesMax }, url.href)))
          await file.writeFile(piece);
      });
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOSPC')
        throw new DriverError('DiskFull', `cannot write the files of ${url.href}: the disk is full`, error);
      throw error;
    } finally {
      await file.close();
    }
  }

  async #authorities(pem: string | undefined): Promise<string | undefined> {
    if (pem === undefined) return undefined;
    const path = join(this.#session.root, 'authorities.pem');
    await writeFile(path, pem);
    await chmod(path, 0o644);
    return path;
  }

  #git(words: readonly string[], secret?: string, consume?: Consume): Promise<GitResult> {
    const { folders, signal } = this.#session;
    const { jail, limits, user, clock, kill } = this.#host;
    const before = jail.words({ fileBytesMax: limits.bytesMax, memoryBytesMax: limits.memoryBytesMax }, user);
    return runGit(
      { clock, kill },
      {
        command: [...before, 'git', ...words],
        environment: gitEnvironment(folders),
        workingDirectory: folders.own,
        signal,
        ...(user === undefined || jail.changesUser ? {} : { user }),
        ...(secret === undefined ? {} : { secret }),
        ...(consume === undefined ? {} : { consume }),
      },
    );
  }

  async #must(words: readonly string[], secret?: string, consume?: Consume): Promise<GitResult> {
    const result = await this.#git(words, secret, consume);
    if (result.exitCode !== 0) throw this.#failure(result);
    return result;
  }

  #failure(result: GitResult): DriverError {
    const { url, commit } = this.#session;
    return gitFailure(result, { url: url.href, commit });
  }
}

/** Headers and small files come in pieces of 512 bytes. */
async function* inLargePieces(input: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of input) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes < pieceBytesMin) continue;
    yield Buffer.concat(pieces);
    [pieces, bytes] = [[], 0];
  }
  if (bytes > 0) yield Buffer.concat(pieces);
}

const pieceBytesMin = 256 * 1024;

/** For what heeds no signal. Throws the signal's reason. */
function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

interface Resolver {
  readonly networks: RepositoryNetworks;
  readonly lookup: FetchHost['lookup'];
}

/** Every address of the host; one that is refused refuses all. */
async function resolve({ href, host }: RepositoryUrl, { networks, lookup }: Resolver): Promise<readonly string[]> {
  const found = isIP(host) === 0 ? await addressesOf(host, { href, lookup }) : [host];
  for (const address of found) {
    const why = networks.refusal(host, address);
    if (why !== undefined) throw new DriverError('RepositoryRefused', `cannot fetch ${href}: ${why}`);
  }
  return found;
}

async function addressesOf(
  host: string,
  { href, lookup }: { readonly href: string; readonly lookup: FetchHost['lookup'] },
): Promise<readonly string[]> {
  const found = await lookup(host).catch((cause: unknown) => {
    const message = `cannot fetch ${href}: this host cannot resolve "${host}": ${describeError(cause)}`;
    throw new DriverError('RepositoryUnavailable', message, cause);
  });
  if (found.length === 0)
    throw new DriverError('RepositoryUnavailable', `cannot fetch ${href}: "${host}" has no address`);
  return found.map(({ address }) => address);
}

/** git connects to the addresses that were checked: a name that leads elsewhere a moment later leads nowhere. */
function pinOf({ host, port }: RepositoryUrl, addresses: readonly string[]): string | undefined {
  if (isIP(host) !== 0) return undefined;
  const shown = addresses.map((address) => (isIP(address) === 6 ? `[${address.split('%', 1)[0] ?? ''}]` : address));
  return `${host}:${port}:${shown.join(',')}`;
}
