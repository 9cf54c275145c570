// Parses a store URL: the client's connection settings, the schema, and the name for messages. No message may contain
// the password, so errors of the parser are not passed on.

import { Client } from 'pg';
import { describeError } from '../../base/log.ts';
import { StoreError } from '../store.ts';

export interface PostgresTarget {
  readonly connectionString: string;
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
  const { host, port, database } = clientOf(connectionString);
  return { connectionString, schema, where: `${host}:${port}/${database}` };
}

/** Never connects: it only knows the client's interpretation of the URL and of variables such as PGHOST. */
function clientOf(connectionString: string): { host: string; port: number; database?: string | undefined } {
  try {
    return new Client({ connectionString });
  } catch (error) {
    // An unreadable certificate names its file; an error about the URL itself could reveal more.
    const reason = error instanceof Error && 'path' in error ? describeError(error) : `write ${form}`;
    throw new StoreError('Invalid', `the URL of the PostgreSQL store cannot be used: ${reason}`);
  }
}
