// Parses a store URL: the client's connection settings, the schema, and the name for messages. No message may contain
// the password, so errors of the parser are not passed on.

import type { ConnectionOptions } from 'node:tls';
import { Client } from 'pg';
import { type TlsFile, TlsFileError, readTlsFiles } from '../../base/tls/tls-files.ts';
import { StoreError } from '../store.ts';

export interface PostgresTarget {
  /** Without what is about TLS. */
  readonly connectionString: string;
  /** Read at each call: certificates may have been replaced. Undefined: what variables such as PGSSLMODE say. */
  readonly tls: () => ConnectionOptions | false | undefined;
  readonly schema: string;
  /** Host, port and database, for messages. */
  readonly where: string;
}

const form = 'postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME';

/** A name that needs no quotes, short enough for the name of the channel. */
const schemaName = /^[a-z_][a-z0-9_]{0,39}$/;

const parameters: readonly string[] = [
  ...['schema', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'application_name'],
  ...['host', 'port', 'user', 'password'],
];

const sslParameters: readonly string[] = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'];

const sslModes: readonly string[] = ['disable', 'no-verify', 'verify-full'];

/** `rest`: the part after `postgres:`. */
export function parsePostgresUrl(rest: string): PostgresTarget {
  const connectionString = `postgres:${rest}`;
  const url = rest.startsWith('//') && URL.canParse(connectionString) ? new URL(connectionString) : undefined;
  if (!url) throw new StoreError('Invalid', `a PostgreSQL store is written ${form}; encode special characters as %XX`);
  const schema = url.searchParams.get('schema') ?? 'berth';
  if (!schemaName.test(schema))
    throw new StoreError(
      'Invalid',
      `schema ${JSON.stringify(schema)} was refused: write up to 40 small letters, digits and "_", beginning with a letter`,
    );
  const unknown = [...url.searchParams.keys()].find((name) => !parameters.includes(name));
  if (unknown !== undefined)
    throw new StoreError(
      'Invalid',
      `a PostgreSQL store has no parameter ${JSON.stringify(unknown)}; there are: ${parameters.join(', ')}`,
    );
  const sslmode = url.searchParams.get('sslmode');
  if (sslmode !== null && !sslModes.includes(sslmode))
    throw new StoreError(
      'Invalid',
      `sslmode=${JSON.stringify(sslmode)} is refused, because programs disagree on its meaning; write verify-full (the server's certificate, against sslrootcert=FILE if that is given), no-verify or disable`,
    );
  if (url.hostname.includes(','))
    throw new StoreError('Invalid', 'a PostgreSQL store has one host; name the address that follows its primary');
  const tls = tlsOf(url.searchParams);
  const plain = withoutTls(connectionString);
  const { host, port, database } = clientOf(plain);
  tls(); // a file that cannot be used ends the start
  return { connectionString: plain, tls, schema, where: `${host}:${port}/${database}` };
}

function tlsOf(parameters: URLSearchParams): PostgresTarget['tls'] {
  const given = sslParameters.filter((name) => parameters.get(name));
  if (given.length === 0) return () => undefined;
  const mode = parameters.get('sslmode');
  const files = given.filter((name) => name !== 'sslmode');
  if (mode === 'disable') {
    if (files.length > 0)
      throw new StoreError('Invalid', `sslmode=disable cannot be combined with ${files.join(', ')} in the store URL`);
    return () => false;
  }
  if (files.includes('sslcert') !== files.includes('sslkey'))
    throw new StoreError('Invalid', 'sslcert and sslkey belong together in the store URL');
  const file = (setting: string): TlsFile | undefined => {
    const path = parameters.get(setting);
    return path ? { setting, path } : undefined;
  };
  return () => {
    try {
      const read = readTlsFiles({ ca: file('sslrootcert'), cert: file('sslcert'), key: file('sslkey') });
      return { ...read, rejectUnauthorized: mode !== 'no-verify' };
    } catch (error) {
      if (!(error instanceof TlsFileError)) throw error;
      throw new StoreError('Invalid', `the URL of the PostgreSQL store cannot be used: ${error.message}`, {
        cause: error,
      });
    }
  };
}

function withoutTls(connectionString: string): string {
  const [address = '', query] = connectionString.split('?', 2);
  const kept = (query ?? '').split('&').filter((part) => !sslParameters.includes(part.split('=', 1)[0] ?? ''));
  return kept.join('') === '' ? address : `${address}?${kept.join('&')}`;
}

/** Never connects: it only knows the client's interpretation of the URL and of variables such as PGHOST. */
function clientOf(connectionString: string): { host: string; port: number; database?: string | undefined } {
  try {
    return new Client({ connectionString });
  } catch {
    throw new StoreError('Invalid', `the URL of the PostgreSQL store cannot be used: write ${form}`);
  }
}
