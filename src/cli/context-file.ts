// The file of contexts: a user's servers with their tokens. It is written completely or not at all, readable by its
// owner only.

import { open, mkdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isRecord } from '../base/is-record.ts';
import type { Cli } from './cli.ts';
import { CommandError, exitCodes, usageError } from './exit-codes.ts';
import { readYamlFile } from './options/yaml-file.ts';

export interface Context {
  readonly url: string;
  readonly token?: string;
  /** The name of the token, if a login gave it: `berth logout` revokes it. */
  readonly tokenName?: string;
  readonly project?: string;
  /** Path of a PEM file: certificate authorities to trust in addition to those of Node. */
  readonly ca?: string;
  /** PEM: the only authorities that are trusted. They were fetched once, and have the fingerprint that was given. */
  readonly authorities?: string;
  /** The token may be sent to other machines over plain HTTP. */
  readonly insecureHttp?: true;
}

export interface Contexts {
  readonly current?: string;
  readonly contexts: Readonly<Record<string, Context>>;
}

export const contextName = /^[a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?$/;

export function contextFilePath({ environment, homeDirectory }: Pick<Cli, 'environment' | 'homeDirectory'>): string {
  const configHome = environment['XDG_CONFIG_HOME'];
  return environment['BERTH_CONFIG'] || join(configHome || join(homeDirectory, '.config'), 'berth', 'config.yaml');
}

export async function readContexts(path: string): Promise<Contexts> {
  const status = await stat(path).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (!status) return { contexts: {} };
  if (status.isFile() && (status.mode & 0o077) !== 0) {
    throw new CommandError(
      exitCodes.usage,
      `cannot use ${path}: it holds tokens, and other users can read or write it`,
      {
        advice: `chmod 600 ${path}`,
      },
    );
  }
  return checked(await readYamlFile(path, 'contexts'), path);
}

/** Written beside its place with mode 0600, synced, then renamed: a crash leaves the old file or the new one. */
export async function writeContexts(path: string, contexts: Contexts): Promise<void> {
  const { stringify } = await import('yaml');
  const directory = dirname(path);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const draft = `${path}.new`;
  await rm(draft, { force: true });
  try {
    const file = await open(draft, 'wx', 0o600);
    try {
      await file.writeFile(`# Servers that berth knows. It holds tokens: keep it private.\n${stringify(contexts)}`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/**
 * Contexts that Berth itself writes for a local server; a new one becomes current only if the present one is of these.
 */
const local = ['dev', 'quickstart'];

export interface LocalContext {
  readonly current: boolean;
  /**
   * When the server ends: deletes the context, and restores the previous current context, unless the user has changed
   * either. Returns the name of the restored context.
   */
  leave(): Promise<string | undefined>;
}

/** Sets a context and makes it current, unless the user has chosen another server. */
export async function useLocalContext(path: string, name: string, context: Context): Promise<LocalContext> {
  const { current: before, contexts } = await readContexts(path);
  const chosen = before !== undefined && !local.includes(before) && contexts[before] !== undefined ? before : name;
  await writeContexts(path, { current: chosen, contexts: { ...contexts, [name]: context } });
  return {
    current: chosen === name,
    async leave() {
      const now = await readContexts(path);
      const { [name]: own, ...others } = now.contexts;
      if (own?.url !== context.url || own.token !== context.token) return undefined;
      const wanted = now.current === name ? before : now.current;
      const current = wanted !== undefined && Object.hasOwn(others, wanted) ? wanted : undefined;
      await writeContexts(path, { ...(current === undefined ? {} : { current }), contexts: others });
      return now.current === name ? current : undefined;
    },
  };
}

function checked(value: unknown, path: string): Contexts {
  if (value === null) return { contexts: {} };
  const refuse = (place: string, must: string): never => {
    throw usageError(
      `cannot use ${path}: ${place} must be ${must}`,
      'correct or remove the file; "berth context set" writes a new one',
    );
  };
  if (!isRecord(value)) return refuse('the file', 'a map with "current" and "contexts"');
  const { current, contexts = {} } = value;
  if (current !== undefined && typeof current !== 'string') return refuse('current', 'the name of a context');
  if (!isRecord(contexts)) return refuse('contexts', 'a map of name to url and token');
  const entries = Object.entries(contexts).map(([name, context]): [string, Context] => {
    if (!isRecord(context) || typeof context['url'] !== 'string')
      return refuse(`contexts.${name}`, 'a map with a "url"');
    const { token, tokenName, project, ca, authorities, insecureHttp } = context;
    if (token !== undefined && typeof token !== 'string') return refuse(`contexts.${name}.token`, 'text');
    if (tokenName !== undefined && typeof tokenName !== 'string')
      return refuse(`contexts.${name}.tokenName`, 'the name of a token');
    if (project !== undefined && typeof project !== 'string') return refuse(`contexts.${name}.project`, 'text');
    if (authorities !== undefined && typeof authorities !== 'string')
      return refuse(`contexts.${name}.authorities`, 'certificates in PEM form');
    if (ca !== undefined && typeof ca !== 'string') return refuse(`contexts.${name}.ca`, 'the path of a file');
    return [
      name,
      {
        url: context['url'],
        ...(token === undefined ? {} : { token }),
        ...(tokenName === undefined ? {} : { tokenName }),
        ...(project === undefined ? {} : { project }),
        ...(ca === undefined ? {} : { ca }),
        ...(authorities === undefined ? {} : { authorities }),
        ...(insecureHttp === true ? { insecureHttp } : {}),
      },
    ];
  });
  return { ...(current === undefined ? {} : { current }), contexts: Object.fromEntries(entries) };
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
