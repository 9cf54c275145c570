// The server, the token and the project of a command. A context's token is sent to that context's server only.

import type { Command } from 'commander';
import { authoritiesHeader } from '../api/trust/authority.ts';
import { nearest } from '../api/nearest.ts';
import { crossesInClear } from '../api/client/plain-http.ts';
import { Servers, serverUrls } from '../api/client/servers.ts';
import { createUserClient, type UserClient } from '../api/client/user-client.ts';
import { describeError } from '../base/log.ts';
import { TlsFetch } from '../base/tls/tls-fetch.ts';
import { certificatesAt, systemPrng, trustCertificates } from '../base/system.ts';
import type { Cli } from './cli.ts';
import { type Context, contextFilePath, readContexts } from './context-file.ts';
import { CommandError, exitCodes, usageError } from './exit-codes.ts';
import { traced } from './traced.ts';
import { knownServersFile, readKnownServers, writeKnownServers } from './known-servers.ts';

export interface Session {
  readonly client: UserClient;
  /** Of one fleet; mostly a single one. */
  readonly servers: Servers;
  /** Sent to that server only. */
  readonly token?: string;
  /** `default` when none is chosen, like on the server. */
  readonly project: string;
  /** PEM: the only authorities that are trusted; absent: those of the process. */
  readonly authorities?: string;
}

/** The server from the flag, then the environment, then the current context. */
export async function openSession(cli: Cli, command: Command, chosen?: Chosen): Promise<Session> {
  const { context: found, project: asked } = await chosenContext(cli, serverFlags(command, chosen?.server));
  const { token: _token, ...withoutToken } = found;
  const context: Context = chosen?.anonymous ? withoutToken : found;
  const project = asked ?? context.project ?? 'default';
  if (!projectName.test(project))
    throw usageError(`a project cannot be called "${project}"`, 'use lower-case letters, digits and "-"');
  const urls = checkedUrls(context.url);
  const insecureHttp = mayUseHttp(cli, command, context);
  // A login brings a token back.
  if (!insecureHttp && (context.token !== undefined || chosen?.anonymous)) assertEncrypted(urls);
  const servers = serversOf(cli, urls, insecureHttp);
  const trust = await trustOf(cli, context, urls);
  if (context.ca !== undefined) await withAuthorities(context.ca, trustCertificates);
  return {
    client: createUserClient({
      fetch: traced(trust === undefined ? cli.fetch : learningFetch(cli, found, trust), cli.environment),
      url: servers,
      userAgent: `berth/${cli.version}`,
      ...(context.token === undefined ? {} : { token: context.token }),
    }),
    servers,
    ...(trust === undefined ? {} : { authorities: trust.ca }),
    ...(context.token === undefined ? {} : { token: context.token }),
    project,
  };
}

/** A flag, a variable, or a setting of the context. */
function mayUseHttp(cli: Cli, command: Command, context: Context): boolean {
  const variable = cli.environment['BERTH_INSECURE_HTTP'];
  return context.insecureHttp === true || globalFlags(command).insecureHttp === true || variable === 'true';
}

function assertEncrypted(urls: readonly string[]): void {
  const exposed = urls.find(crossesInClear);
  if (exposed !== undefined)
    throw usageError(
      `the token is not sent to ${exposed}: over plain HTTP it could be read on the network`,
      'use https:, or allow it with --insecure-http, BERTH_INSECURE_HTTP=true or "berth context set NAME --insecure-http"',
    );
}

/** Undefined: the authorities of the process are trusted. */
async function trustOf(
  cli: Cli,
  { authorities }: Context,
  urls: readonly string[],
): Promise<{ readonly ca: string } | undefined> {
  if (authorities !== undefined) return { ca: authorities };
  const fingerprint = cli.environment['BERTH_CA_FINGERPRINT'];
  return fingerprint ? { ca: await authorityAt(urls, fingerprint) } : undefined;
}

/**
 * Sends requests over connections that the authorities of the context verify. When the fleet reports other authorities, they replace those of the
 * context, so that the context still works after the old authority is dropped.
 */
function learningFetch(cli: Cli, context: Context, trust: { readonly ca: string }): TlsFetch['fetch'] {
  const tls = new TlsFetch(() => trust);
  let learned = context.authorities === undefined; // a fingerprint from the environment is not stored
  return async (url, init) => {
    const response = await tls.fetch(url, init);
    const told = response.headers.get(authoritiesHeader);
    if (!learned && told !== null) {
      learned = true;
      const { learnAuthorities } = await import('./learn-authorities.ts');
      await learnAuthorities({ path: contextFilePath(cli), context, told, url, send: tls.fetch });
    }
    return response;
  };
}

/** PEM of the authority with this fingerprint, from the first of the servers that answers. */
export async function authorityAt(urls: readonly string[], text: string): Promise<string> {
  const { fingerprintIn, pinnedAuthority } = await import('../base/tls/pinned-authority.ts');
  const fingerprint = fingerprintIn(text);
  if (fingerprint === undefined)
    throw usageError(`"${text}" is no fingerprint`, 'write it as sha256: and 64 hex digits, as "berth server" logs it');
  let failure: CommandError | undefined;
  for (const url of urls.filter((each) => each.startsWith('https:'))) {
    try {
      return await pinnedAuthority(url, fingerprint);
    } catch (error) {
      failure ??= new CommandError(exitCodes.usage, `cannot verify ${url}: ${describeError(error)}`, {
        cause: error,
      });
    }
  }
  throw failure ?? usageError('a fingerprint needs a URL with https:');
}

function serversOf(cli: Cli, urls: readonly string[], insecureHttp: boolean): Servers {
  const path = knownServersFile(contextFilePath(cli));
  const known = readKnownServers(path, urls);
  const mayUse = (url: string): boolean => insecureHttp || !crossesInClear(url);
  const servers = new Servers({ urls, known, spread: { clock: cli.clock, prng: systemPrng() }, mayUse });
  servers.onChange(() => writeKnownServers(path, urls, servers.known));
  return servers;
}

/** What a command has chosen itself. */
interface Chosen {
  readonly server: ChosenServer;
  /** No token is sent. */
  readonly anonymous?: true;
}

export type ChosenServer = { readonly url: string } | { readonly context: string };

function serverFlags(command: Command, chosen: ChosenServer | undefined): GlobalFlags {
  const { url, context, ...others } = globalFlags(command);
  if (chosen !== undefined) return { ...others, ...chosen };
  return { ...others, ...(url === undefined ? {} : { url }), ...(context === undefined ? {} : { context }) };
}

/** Whether any source names a server; it may still be invalid. */
export async function knowsServer(cli: Cli, command: Command): Promise<boolean> {
  const { url, context } = globalFlags(command);
  if ((url ?? context) !== undefined || cli.environment['BERTH_URL']) return true;
  return (await readContexts(contextFilePath(cli))).current !== undefined;
}

/** `Name` of api/resources/metadata.ts, which would load schemas. */
const projectName = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

export interface GlobalFlags {
  readonly context?: string;
  readonly url?: string;
  readonly project?: string;
  readonly insecureHttp?: true;
}

export function globalFlags(command: Command): GlobalFlags {
  return command.optsWithGlobals<GlobalFlags>();
}

async function chosenContext(cli: Cli, flags: GlobalFlags): Promise<{ context: Context; project: string | undefined }> {
  const { environment } = cli;
  const project = flags.project ?? (environment['BERTH_PROJECT'] || undefined);
  const token = environment['BERTH_TOKEN'] || undefined;
  if (flags.url !== undefined && flags.context !== undefined)
    throw usageError('--url and --context cannot both be given');
  const url = flags.url ?? (flags.context === undefined ? environment['BERTH_URL'] || undefined : undefined);
  const ca = environment['BERTH_CA'] || undefined;
  const own = { ...(token === undefined ? {} : { token }), ...(ca === undefined ? {} : { ca }) };
  if (url !== undefined) return { context: { url, ...own }, project };
  const path = contextFilePath(cli);
  const { current, contexts } = await readContexts(path);
  const name = flags.context ?? current;
  if (name === undefined) {
    throw usageError(
      'no server is known',
      'start one here with "berth dev", or set BERTH_URL and BERTH_TOKEN, or add one: berth context set NAME --url URL --token-file FILE',
    );
  }
  const context = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (!context) {
    const meant = nearest(name, Object.keys(contexts));
    throw usageError(
      `there is no context "${name}" in ${path}`,
      meant ? `did you mean "${meant}"?` : '"berth context ls" shows the contexts',
    );
  }
  return { context: flags.context === undefined ? { ...context, ...own } : context, project };
}

/** Reads the file of `--ca`, and passes its certificates to `use`. */
export async function withAuthorities(
  path: string,
  use: (certificates: readonly string[]) => Promise<void> = async () => {},
): Promise<void> {
  try {
    await use(await certificatesAt(path));
  } catch (cause) {
    throw usageError(
      `cannot trust the authorities in ${path}: ${describeError(cause)}`,
      'the file must hold certificates in PEM form; a context names it by --ca, BERTH_CA is for one command',
    );
  }
}

/** `http://cp1:7070,http://cp2:7070`: several servers of one fleet. */
export function checkedUrls(text: string): string[] {
  const urls = serverUrls(text).map(checkedUrl);
  return urls.length === 0 ? [checkedUrl(text)] : urls;
}

function checkedUrl(text: string): string {
  const url = URL.parse(text);
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw usageError(`"${text}" is not the URL of a server`, 'write it as http://HOST:PORT or https://HOST');
  }
  if (url.username || url.password)
    throw usageError("a server's URL must hold no user name or password", 'tokens go into BERTH_TOKEN or a context');
  return (url.origin + url.pathname).replace(/\/+$/, '');
}
