// Parses a store URL: the addresses of etcd and the credentials. Its messages never contain the password.
//
//   etcd://HOST:PORT[,HOST:PORT...][/PREFIX][?user=..&password=..&tls=true&ca=FILE&cert=FILE&key=FILE]

import { type TlsFile, TlsFileError, readTlsFiles } from '../../base/tls/tls-files.ts';
import { StoreError } from '../store.ts';

export interface EtcdAddress {
  /** `host:port`, at least one. */
  readonly endpoints: readonly string[];
  /** All keys of the store start with this and a slash. */
  readonly prefix: string;
  readonly login?: { readonly user: string; readonly password: string };
  /** PEM; absent parts are the system's, or not used. */
  readonly tls?: { readonly ca?: Buffer; readonly cert?: Buffer; readonly key?: Buffer };
  /** The name in messages: endpoints and prefix. */
  readonly name: string;
}

const parameters = ['user', 'password', 'tls', 'ca', 'cert', 'key'];

/** `rest`: the part after `etcd:`. */
export function parseEtcdUrl(rest: string): EtcdAddress {
  const [, hosts = '', path = '', query = ''] = /^\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?(.*))?$/.exec(rest) ?? [];
  if (hosts.includes('@')) throw invalid('user and password are written as parameters: ?user=NAME&password=PASSWORD');
  const endpoints = hosts.split(',').filter((host) => host !== '');
  for (const endpoint of endpoints)
    if (!/^([\w.-]+|\[[\da-fA-F:.%]+\]):\d{1,5}$/.test(endpoint))
      throw invalid(`"${endpoint}" is not HOST:PORT; etcd's usual port is 2379`);
  if (endpoints.length === 0) throw invalid('it names no etcd');

  const prefix = decode(path).replace(/\/+$/, '') || 'berth';
  if (!/^[\x21-\x7e]+$/.test(prefix)) throw invalid(`prefix "${prefix}" holds more than printable ASCII`);
  const values = new URLSearchParams(query);
  for (const name of values.keys())
    if (!parameters.includes(name)) throw invalid(`it has no parameter "${name}"; there are: ${parameters.join(', ')}`);
  return {
    endpoints,
    prefix,
    name: `etcd://${endpoints.join(',')}/${prefix}`,
    ...loginOf(values),
    ...tlsOf(values),
  };
}

function loginOf(values: URLSearchParams): Pick<EtcdAddress, 'login'> {
  const user = values.get('user');
  const password = values.get('password');
  if (user === null && password === null) return {};
  if (!user || password === null) throw invalid('user and password belong together');
  return { login: { user, password } };
}

function tlsOf(values: URLSearchParams): Pick<EtcdAddress, 'tls'> {
  const asked = values.get('tls');
  if (asked !== null && asked !== 'true' && asked !== 'false') throw invalid('tls is true or false');
  const files = ['ca', 'cert', 'key'].filter((name) => values.has(name));
  if (asked === 'false' && files.length > 0) throw invalid(`tls=false cannot be combined with ${files.join(', ')}`);
  if (asked !== 'true' && files.length === 0) return {};
  if (values.has('cert') !== values.has('key')) throw invalid('cert and key belong together');
  const file = (name: string): TlsFile | undefined =>
    values.has(name) ? { setting: `${name}=`, path: values.get(name) ?? '' } : undefined;
  try {
    const read = readTlsFiles({ ca: file('ca'), cert: file('cert'), key: file('key') });
    return { tls: Object.fromEntries(Object.entries(read).map(([name, text]) => [name, Buffer.from(text)])) };
  } catch (error) {
    if (!(error instanceof TlsFileError)) throw error;
    throw new StoreError('Invalid', `the URL of the store is not right: ${error.message}`, { cause: error });
  }
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw invalid(`prefix "${path}" has a % that begins no character`);
  }
}

function invalid(fault: string): StoreError {
  return new StoreError(
    'Invalid',
    `the URL of the store is not right: ${fault}; it is written etcd://HOST:PORT[,HOST:PORT...]/PREFIX`,
  );
}
