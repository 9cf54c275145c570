// Errors of PostgreSQL, its client and the network as store errors: what failed, on which server, what the user can do.

import { DatabaseError } from 'pg';
import { describeError } from '../../base/log.ts';
import { tlsFault } from '../../base/tls/tls-files.ts';
import { StoreError, type StoreErrorCode } from '../store.ts';

/**
 * The connection is unusable: the server or the network ended it, or nothing responds. An error of a single statement
 * is different; then the statement has been rolled back.
 */
export function breaksConnection(error: unknown): boolean {
  if (error instanceof StoreError) return false;
  if (!(error instanceof DatabaseError)) return true;
  return error.severity === 'FATAL' || error.severity === 'PANIC' || /^(08|57P)/.test(error.code ?? '');
}

/** A retry may help: the server is unavailable, starting, or out of connections. */
export function mayPass(error: unknown): boolean {
  return toStoreError(error, { attempted: '', where: '' }).code === 'Unavailable' && passing(error);
}

function passing(error: unknown): boolean {
  if (error instanceof StoreError) return error.cause === undefined || passing(error.cause);
  return breaksConnection(error) || sqlState(error) === '53300';
}

/** `22P02`, …; the empty string for errors that are not the server's. */
export function sqlState(error: unknown): string {
  return error instanceof DatabaseError ? (error.code ?? '') : '';
}

interface Failed {
  readonly attempted: string;
  /** Host, port and database. */
  readonly where: string;
}

export function toStoreError(error: unknown, { attempted, where }: Failed): StoreError {
  if (error instanceof StoreError) return error;
  const state = sqlState(error);
  const { code, remedy, found = describeError(error) } = kindOf(error, state);
  const what = `${attempted} failed on ${where}: ${found}${state ? ` (${state})` : ''}`;
  return new StoreError(code, `${what}; ${remedy}`, { cause: error });
}

/** The same failure for a commit that had been sent and whose outcome could not be determined. */
export function withUnknownOutcome(failure: StoreError): StoreError {
  const unsure = 'the commit may or may not have happened: read before trying again';
  return new StoreError(failure.code, `${failure.message}; ${unsure}`, { cause: failure.cause, outcome: 'unknown' });
}

interface Kind {
  readonly code: StoreErrorCode;
  readonly remedy: string;
  /** The finding, where the client's own text does not help users. */
  readonly found?: string;
}

function kindOf(error: unknown, state: string): Kind {
  if (/^28/.test(state) && error instanceof Error && /certificate/.test(error.message))
    return { code: 'Denied', remedy: 'the server asks for a certificate: set sslcert and sslkey in the URL' };
  if (/^28/.test(state)) return { code: 'Denied', remedy: 'look at user and password in the URL, and at pg_hba.conf' };
  if (state === '3D000') return { code: 'Invalid', remedy: 'create the database, or name another in the URL' };
  if (state === '42501')
    return {
      code: 'Denied',
      remedy: 'allow the role to create schemas in the database, or make it the owner of its schema',
    };
  if (state === '53100')
    return { code: 'Full', remedy: 'free space on the file system of the server; the store then continues by itself' };
  if (/^XX00[12]/.test(state)) return { code: 'Corrupt', remedy: 'the server has found damaged data: see its log' };
  if (/^(42P01|42703|42883|3F000)/.test(state))
    return { code: 'Corrupt', remedy: 'the schema lacks something of the store: put a backup in its place' };
  if (state === '53300')
    return { code: 'Unavailable', remedy: 'raise max_connections of the server, or end some of its clients' };
  if (state === '57014') return { code: 'Unavailable', remedy: 'it took too long; check the load of the server' };
  if (state !== '') return { code: 'Unavailable', remedy: 'see the log of the server' };
  return kindOfClient(error) ?? { code: 'Unavailable', remedy: 'see whether the server runs and can be reached' };
}

const tlsRemedies = {
  authority: "set sslrootcert in the URL to the file of the authority that issued the server's certificate",
  name: 'the certificate of the server must name the host of the URL',
  own: 'the server has refused the certificate of sslcert, or asks for one',
} as const;

/** Errors of the client itself, about a missing password or an untrusted server; it has no error classes for these. */
function kindOfClient(error: unknown): Kind | undefined {
  if (!(error instanceof Error)) return undefined;
  // pg 8.23, when SCRAM requires a password and the URL has none, or an empty one.
  if (/password must be a/.test(error.message))
    return {
      code: 'Denied',
      found: 'the server asks for a password, and the URL has none',
      remedy: 'write it into the URL, postgres://USER:PASSWORD@..., or into PGPASSWORD',
    };
  if (/does not support SSL/.test(error.message))
    return {
      code: 'Invalid',
      remedy: 'sslmode asks for TLS: switch it on in the server (ssl = on), or write sslmode=disable into the URL',
    };
  if (/SASL|password/.test(error.message)) return { code: 'Denied', remedy: 'look at user and password in the URL' };
  const code = 'code' in error ? String(error.code) : '';
  const fault = tlsFault(error);
  if (fault !== undefined) return { code: 'Denied', remedy: tlsRemedies[fault] };
  if (/^(ERR_TLS|ERR_SSL|CERT_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED)/.test(code) || error.message.includes('SSL'))
    return { code: 'Denied', remedy: 'look at sslmode, sslrootcert, sslcert and sslkey in the URL' };
  return undefined;
}
