// Classifies etcd's and gRPC's errors by what can be done about them. It decides from status and text alone, and never
// retries.

import { type ServiceError, status } from '@grpc/grpc-js';
import { describeError } from '../../base/log.ts';
import { StoreError, type StoreErrorCode } from '../store.ts';

/**
 * `away`: try another member, or later. `token`: log in again. `forgotten`: that etcd revision has been compacted; read
 * again. The others are reported to the user.
 */
export type Fault = 'away' | 'token' | 'forgotten' | 'Full' | 'Denied' | 'Corrupt' | 'Invalid';

export interface EtcdFault {
  readonly fault: Fault;
  /** Whether etcd may have executed the request nevertheless. */
  readonly maybeDone: boolean;
  readonly text: string;
}

export function faultOf(error: unknown): EtcdFault {
  const text = isServiceError(error) ? withoutEmptyNote(error.details) : describeError(error);
  const refused = (fault: Fault): EtcdFault => ({ fault, maybeDone: false, text });
  if (!isServiceError(error)) return { fault: 'away', maybeDone: true, text };
  switch (error.code) {
    case status.UNAUTHENTICATED:
      return refused('token');
    case status.PERMISSION_DENIED:
      return refused('Denied');
    case status.OUT_OF_RANGE:
      return refused('forgotten');
    case status.DATA_LOSS:
      return refused('Corrupt');
    case status.UNIMPLEMENTED:
      return refused('Invalid');
    case status.INVALID_ARGUMENT:
      if (/auth store is old/.test(text)) return refused('token');
      return refused(/authentication failed|user name/.test(text) ? 'Denied' : 'Invalid');
    case status.RESOURCE_EXHAUSTED:
      return refused(/space exceeded/.test(text) ? 'Full' : 'away');
    default: {
      // No connection: nothing was sent. TLS errors appear in the text only.
      const sent = !/^(No connection established|Name resolution failed)/.test(text);
      if (!sent && /certificate|self.signed|altname|alert number|wrong version number/i.test(text))
        return refused('Denied');
      return { fault: /corrupt cluster/.test(text) ? 'Corrupt' : 'away', maybeDone: sent, text };
    }
  }
}

const remedies: Readonly<Record<Fault, string>> = {
  away: 'see that etcd runs, has a leader and can be reached from here',
  token: 'see the user= and password= of the store URL',
  forgotten:
    'try again; if the error persists, another program keeps compacting this etcd: use a separate etcd for Berth',
  Full: 'make room: etcdctl compact REVISION, etcdctl defrag, etcdctl alarm disarm (or raise --quota-backend-bytes); the store then continues by itself',
  Denied:
    'see user=, password=, ca=, cert= and key= of the store URL, and that the user has a role that may read and write the prefix',
  Corrupt: 'stop the servers and restore etcd from a snapshot',
  Invalid: 'see that it is etcd 3.4 or newer, with the usual --max-request-bytes and --max-txn-ops or larger ones',
};

export function storeErrorOf(
  found: EtcdFault,
  where: { readonly attempted: string; readonly name: string },
  options: { readonly cause: unknown; readonly outcome?: 'none' | 'unknown' },
): StoreError {
  const unsure =
    options.outcome === 'unknown' ? '; the commit may or may not have happened: read before trying again' : '';
  return new StoreError(
    codeOf(found.fault),
    `${where.attempted} failed on ${where.name}: ${found.text}${unsure}; ${remedyOf(found)}`,
    options,
  );
}

function remedyOf({ fault, text }: EtcdFault): string {
  // A server that cannot parse a handshake closes the connection; unread data then turns that into a reset.
  const hungUp = /disconnected before secure TLS connection|No connection established.*ECONNRESET/.test(text);
  if (fault === 'Denied' && /altname/i.test(text)) return 'its certificate must name the host of the store URL';
  if (fault === 'Denied' && /alert number|certificate required|bad certificate/i.test(text))
    return 'etcd asks for a certificate of its authority: see cert= and key= of the store URL';
  if (fault === 'Denied' && /certificate|self.signed/i.test(text))
    return "set ca= of the store URL to the file of the authority that issued etcd's certificate";
  return hungUp ? `${remedies[fault]}; if it speaks no TLS, the store URL must be without ?tls=` : remedies[fault];
}

/** gRPC 1.14 adds its notes on the name's addresses, which are mostly empty. */
function withoutEmptyNote(details: string): string {
  return details.replace(/\.? Resolution note: *$/, '');
}

export function corrupt(name: string, found: string): StoreError {
  return new StoreError('Corrupt', `${name} is damaged: ${found}; nothing was changed: ${remedies.Corrupt}`);
}

function codeOf(fault: Fault): StoreErrorCode {
  switch (fault) {
    case 'away':
    case 'forgotten':
      return 'Unavailable';
    case 'token':
      return 'Denied';
    default:
      return fault;
  }
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' && 'details' in error;
}
