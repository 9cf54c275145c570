// Checks the URL of a repository that a user wrote. Pure. What it returns is the URL that git is given: one reading of it, by git and by the
// agent, so that an address or a credential is never chosen for another URL than the one that is fetched.

import { isIP } from 'node:net';
import { DriverError } from '../../host/driver-error.ts';

export interface RepositoryUrl {
  /** Normalized: no user name, no query, no dots in the path, host in small letters. */
  readonly href: string;
  readonly protocol: 'http:' | 'https:';
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
  readonly path: string;
}

/** Throws `RepositoryRefused`. */
export function parseRepositoryUrl(text: string): RepositoryUrl {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw refused(text, 'it is no http: or https: URL');
  if (url.username !== '' || url.password !== '')
    throw refused(text, 'a URL must not contain a user name or password; set repositoryCredentials of the agent');
  if (url.search !== '' || url.hash !== '' || /[?#]/.test(text))
    throw refused(text, 'the URL of a repository has no query and no fragment');
  // A server may decode these into a path that belongs to another prefix of repositoryCredentials.
  if (/%2f|%5c|%2e|%00|%0a|%0d/i.test(url.pathname))
    throw refused(text, 'its path contains an encoded slash, dot or control character');
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  // curl looks a pinned name up by its exact text, so a name that curl would change must not reach it.
  if (isIP(host) === 0 && !/^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/.test(host))
    throw refused(text, `"${host}" is no host name`);
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  const shown = isIP(host) === 6 ? `[${host}]` : host;
  const href = `${url.protocol}//${shown}${url.port === '' ? '' : `:${url.port}`}${url.pathname}`;
  return { href, protocol: url.protocol, host, port, path: url.pathname };
}

/** For messages: whatever a user wrote, without what may be a secret. */
export function describeUrl(text: string): string {
  const url = URL.parse(text);
  return url === null ? 'the repository' : `${url.protocol}//${url.host}${url.pathname}`;
}

function refused(text: string, why: string): DriverError {
  return new DriverError('RepositoryRefused', `cannot fetch ${describeUrl(text)}: ${why}`);
}
