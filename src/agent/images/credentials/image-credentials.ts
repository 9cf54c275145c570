// Chooses the credential for the source of an image by the longest prefix: those of the guest's project first, then those of the host. The
// values are read for each fetch. They reach the server of the prefix and, of a registry, its token service; never a log or an error.

import { readFile } from 'node:fs/promises';
import { ApiError } from '../../../api/errors.ts';
import { type ImagePlace, longestPrefix, placeOfSource, readImagePrefix } from '../../../api/images/image-prefix.ts';
import type { Clock } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import { runTool } from '../../host/run-tool.ts';
import type { ImageCredentialConfig } from './image-credential-config.ts';

/** `username` absent: `secret` is a bearer token. */
export interface Credential {
  readonly username?: string | undefined;
  readonly secret: string;
}

/** Of the project of a guest, with the value. */
export interface GuestCredential extends Credential {
  readonly prefix: string;
}

/** Those of one guest. What they fetch is for guests of the same project. */
export interface GuestCredentials {
  readonly project: string;
  readonly credentials: readonly GuestCredential[];
}

/** Throws `DriverError` `ImageUnavailable` for a credential that cannot be read. Undefined: none is for this source. */
export type CredentialFor = (source: string) => Promise<Credential | undefined>;

const commandMsMax = 30_000;
const prefixFault = (prefix: string, fault: string): string => `"${prefix}" is no prefix of images: ${fault}`;

/** Of the host's configuration. Throws `InvalidRequest`. */
export function hostCredentials(configs: readonly ImageCredentialConfig[], clock: Clock): CredentialFor {
  const rules = configs.map((config, i) => ({ config, place: checked(config, `imageCredentials[${i}]`) }));
  return async (source) => {
    const place = placeOfSource(source);
    const rule = place && longestPrefix(rules, place);
    if (rule === undefined) return undefined;
    const { username } = rule.config;
    return { ...(username === undefined ? {} : { username }), secret: await secretOf(rule.config, clock) };
  };
}

function checked(config: ImageCredentialConfig, at: string): ImagePlace {
  const refuse = (field: string, why: string): ApiError =>
    new ApiError('InvalidRequest', `${at}.${field}: ${why}`, { field: `${at}.${field}` });
  const read = readImagePrefix(config.prefix);
  if (!read.ok) throw refuse('prefix', prefixFault(config.prefix, read.fault));
  const { place } = read;
  const { username, passwordFile, passwordCommand, tokenFile, tokenCommand } = config;
  const given = [passwordFile, passwordCommand, tokenFile, tokenCommand].filter((each) => each !== undefined);
  if (given.length !== 1)
    throw refuse('passwordFile', 'set one of passwordFile, passwordCommand, tokenFile and tokenCommand');
  const isToken = tokenFile !== undefined || tokenCommand !== undefined;
  if (isToken && username !== undefined) throw refuse('username', 'a bearer token has no user name; remove it');
  if (isToken && place.protocol === 'registry')
    throw refuse('tokenFile', 'registries take a user name and a password; set username, and the token as password');
  if (!isToken && username === undefined) throw refuse('username', 'it is missing; a password needs a user name');
  if (place.inClear && config.insecureHttp !== true)
    throw refuse('prefix', `${config.prefix} is plain HTTP to another machine; use https:, or set insecureHttp`);
  return place;
}

/** The guest's own credential for a source, without the host's. */
export function guestCredentialFor(own: GuestCredentials | undefined, source: string): Credential | undefined {
  const place = placeOfSource(source);
  if (own === undefined || place === undefined) return undefined;
  const rules = own.credentials.flatMap((each) => {
    const read = readImagePrefix(each.prefix);
    return read.ok && !read.place.inClear ? [{ ...each, place: read.place }] : [];
  });
  const rule = longestPrefix(rules, place);
  return rule && { username: rule.username, secret: rule.secret };
}

/** For HTTP. */
export function authorizationOf({ username, secret }: Credential): string {
  return username === undefined
    ? `Bearer ${secret}`
    : `Basic ${Buffer.from(`${username}:${secret}`).toString('base64')}`;
}

/** Without the secret, should a server have sent it back. */
export function withoutSecret(text: string, credential: Credential | undefined): string {
  if (credential === undefined) return text;
  const [, encoded = ''] = authorizationOf(credential).split(' ');
  return text.replaceAll(encoded, '***').replaceAll(credential.secret, '***');
}

async function secretOf(config: ImageCredentialConfig, clock: Clock): Promise<string> {
  const { prefix, passwordFile, passwordCommand, tokenFile, tokenCommand } = config;
  const fault = (why: string, cause?: unknown): DriverError =>
    new DriverError('ImageUnavailable', `cannot use the credential for ${prefix}: ${why}`, cause);
  const path = passwordFile ?? tokenFile;
  const text =
    path === undefined
      ? await printedBy(passwordCommand ?? tokenCommand ?? '', { clock, fault })
      : await readFile(path, 'utf8').catch((cause: unknown) => {
          throw fault(`cannot read its file: ${describeError(cause)}`, cause);
        });
  const secret = text.replace(/\r?\n$/, '');
  if (!/^[\x20-\x7e]+$/.test(secret)) throw fault('it must be one line of ASCII characters');
  return secret;
}

/** What a command says when it fails may hold a secret, and is not told. */
async function printedBy(
  command: string,
  { clock, fault }: { readonly clock: Clock; readonly fault: (why: string) => DriverError },
): Promise<string> {
  const call = { program: '/bin/sh', arguments: ['-c', `exec 2>/dev/null; ${command}`], timeoutMs: commandMsMax };
  const result = await runTool(clock, call);
  if (result.ok) return result.output;
  throw fault(
    result.reason === 'failed'
      ? `its command failed: exit code ${result.exitCode ?? 'unknown'}`
      : `its command: ${result.reason}`,
  );
}
