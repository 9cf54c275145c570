// Which server a login is for, and which context keeps its token. A context's token is replaced, never sent to another server.

import { resolve } from 'node:path';
import type { Command } from 'commander';
import { trustCertificates } from '../../../base/system.ts';
import type { Cli } from '../../cli.ts';
import { type Context, contextFilePath, contextName, readContexts, writeContexts } from '../../context-file.ts';
import { usageError } from '../../exit-codes.ts';
import { authorityAt, checkedUrls, type ChosenServer, globalFlags, withAuthorities } from '../../session.ts';

export interface LoginTarget {
  readonly server: ChosenServer;
  /** Name of the context. */
  readonly name: string;
  readonly url: string;
  readonly before: Context | undefined;
  /** Path of the authorities that this login trusts: the context must, too. */
  readonly ca?: string;
  /** PEM of the fleet's own authority, found by its fingerprint. */
  readonly authorities?: string;
  readonly insecureHttp?: true;
}

/** The server of the argument, of the flags or of the environment; else that of the current context. */
export async function loginTarget(
  cli: Cli,
  command: Command,
  { url: given, ca }: { readonly url: string | undefined; readonly ca: string | undefined },
): Promise<LoginTarget> {
  const trusted = ca ?? (cli.environment['BERTH_CA'] || undefined);
  if (trusted !== undefined) await withAuthorities(trusted, trustCertificates);
  const target = await targetOf(cli, command, given);
  const fingerprint = cli.environment['BERTH_CA_FINGERPRINT'];
  return {
    ...target,
    ...(trusted === undefined ? {} : { ca: resolve(trusted) }),
    ...(fingerprint ? { authorities: await authorityAt(target.url.split(','), fingerprint) } : {}),
    ...(globalFlags(command).insecureHttp ? { insecureHttp: true } : {}),
  };
}

async function targetOf(cli: Cli, command: Command, given: string | undefined): Promise<LoginTarget> {
  const flags = globalFlags(command);
  const { current, contexts } = await readContexts(contextFilePath(cli));
  const known = (name: string): Context | undefined => (Object.hasOwn(contexts, name) ? contexts[name] : undefined);
  const asked =
    given ?? flags.url ?? (flags.context === undefined ? cli.environment['BERTH_URL'] || undefined : undefined);
  if (asked === undefined) {
    const name = flags.context ?? current;
    const before = name === undefined ? undefined : known(name);
    if (name === undefined || before === undefined)
      throw usageError(
        name === undefined ? 'no server is known' : `there is no context "${name}"`,
        'name the server: berth login https://HOST',
      );
    return { server: { context: name }, name, url: before.url, before };
  }
  const url = checkedUrls(asked).join();
  const names = Object.keys(contexts);
  const same = (name: string): boolean => known(name)?.url === url;
  const name = flags.context ?? [current ?? '', ...names].find(same) ?? freeName(url, names);
  if (!contextName.test(name))
    throw usageError(`a context cannot be called "${name}"`, 'use letters, digits and . _ -');
  return same(name)
    ? { server: { context: name }, name, url, before: known(name) }
    : { server: { url }, name, url, before: undefined };
}

/** `berth.example`, or `berth.example-2` when another server has that name. */
function freeName(url: string, taken: readonly string[]): string {
  const host = (URL.parse(url.split(',')[0] ?? '')?.hostname ?? '')
    .replace(/[^a-zA-Z0-9.-]/g, '-')
    .replace(/^[.-]+|[.-]+$/g, '');
  const name = host.slice(0, 56) || 'server';
  for (let i = 1; ; i++) {
    const candidate = i === 1 ? name : `${name}-${i}`;
    if (!taken.includes(candidate)) return candidate;
  }
}

/** Writes the token of a login into the context. Returns whether the context is the current one. */
export async function keepToken(
  cli: Cli,
  { name, url, before, ca, authorities, insecureHttp }: LoginTarget,
  { token, tokenName }: { readonly token: string; readonly tokenName: string },
): Promise<boolean> {
  const path = contextFilePath(cli);
  const { current, contexts } = await readContexts(path);
  // A server that is new here was named because it shall be used.
  const chosen = before === undefined || current === undefined ? name : current;
  await writeContexts(path, {
    current: chosen,
    contexts: {
      ...contexts,
      [name]: {
        ...before,
        url,
        ...(ca === undefined ? {} : { ca }),
        ...(authorities === undefined ? {} : { authorities }),
        ...(insecureHttp ? { insecureHttp } : {}),
        token,
        tokenName,
      },
    },
  });
  return chosen === name;
}
