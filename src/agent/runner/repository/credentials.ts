// Chooses the user name and password for a repository by URL prefix: scheme, host, port and whole path segments. A password is read from its
// file for each fetch, and reaches git over a descriptor that can be read once.

import { readFile } from 'node:fs/promises';
import { ApiError } from '../../../api/errors.ts';
import { describeError } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import { parseRepositoryUrl, type RepositoryUrl } from './repository-url.ts';

interface CredentialRule {
  readonly prefix: string;
  readonly username: string;
  readonly passwordFile: string;
}

export interface ParsedRule extends CredentialRule {
  readonly url: RepositoryUrl;
}

/** Throws `InvalidRequest`. */
export function parseCredentialRules(rules: readonly CredentialRule[]): readonly ParsedRule[] {
  return rules.map((rule, i) => {
    try {
      return { ...rule, url: parseRepositoryUrl(rule.prefix) };
    } catch (cause) {
      const message = `repositoryCredentials: "${rule.prefix}" is no URL prefix, such as https://git.example.com/team: ${describeError(cause)}`;
      throw new ApiError('InvalidRequest', message, { field: `repositoryCredentials[${i}].prefix`, cause });
    }
  });
}

/** The longest prefix wins. */
export function chooseCredential(rules: readonly ParsedRule[], url: RepositoryUrl): ParsedRule | undefined {
  const fitting = rules.filter((rule) => isBelow(rule.url, url));
  return fitting.sort((a, b) => segmentsOf(b.url).length - segmentsOf(a.url).length)[0];
}

function isBelow(prefix: RepositoryUrl, url: RepositoryUrl): boolean {
  if (prefix.protocol !== url.protocol || prefix.host !== url.host || prefix.port !== url.port) return false;
  const [wanted, given] = [segmentsOf(prefix), segmentsOf(url)];
  return wanted.every((segment, i) => segment === given[i]);
}

function segmentsOf({ path }: RepositoryUrl): readonly string[] {
  return path.split('/').filter((segment) => segment !== '');
}

/** What git's credential protocol wants to read. Throws `RepositoryUnavailable` when the file cannot be read or does not hold one line. */
export async function readCredential({ username, passwordFile, prefix }: ParsedRule): Promise<string> {
  const fault = (why: string, cause?: unknown): DriverError =>
    new DriverError('RepositoryUnavailable', `cannot use the credential for ${prefix}: ${why}`, cause);
  const text = await readFile(passwordFile, 'utf8').catch((cause: unknown) => {
    throw fault(`cannot read its passwordFile: ${describeError(cause)}`, cause);
  });
  const password = text.replace(/\r?\n$/, '');
  if (password === '' || /[\0\r\n]/.test(password)) throw fault(`${passwordFile} must hold one line`);
  return `username=${username}\npassword=${password}\n`;
}
