// Opens a store by its URL. Each backend is one line here and one folder; its packages are loaded only when it is used.

import type { Logger } from '../base/log.ts';
import { type Store, StoreError } from './store.ts';

export interface OpenOptions {
  readonly log?: Logger;
  /** Refuses a missing file instead of creating one. */
  readonly mustExist?: boolean;
}

interface Backend {
  /** The form of the URL, for help and errors. */
  readonly form: string;
  /** `rest`: the part after the scheme and its colon. */
  open(rest: string, options: OpenOptions): Promise<Store>;
  /** The name of the store in messages, never with a password. */
  place(rest: string): Promise<string>;
}

const postgres: Backend = {
  form: 'postgres://USER:PASSWORD@HOST:PORT/DATABASE',
  open: async (rest, options) => (await import('./postgres/postgres-store.ts')).openPostgresStore({ rest, ...options }),
  async place(rest) {
    const { where, schema } = (await import('./postgres/postgres-url.ts')).parsePostgresUrl(rest);
    return `postgres://${where}, schema ${schema}`;
  },
};

const backends: Readonly<Record<string, Backend>> = {
  memory: {
    form: 'memory:',
    open: async () => (await import('./memory/memory-store.ts')).createMemoryStore(),
    place: async () => 'memory: nothing is kept',
  },
  sqlite: {
    form: 'sqlite:PATH',
    open: async (path, options) => (await import('./sqlite/sqlite-store.ts')).openSqliteStore({ path, ...options }),
    place: async (path) => `sqlite:${path}`,
  },
  postgres,
  postgresql: postgres,
  etcd: {
    form: 'etcd://HOST:PORT[,HOST:PORT...]/PREFIX',
    open: async (rest, options) => (await import('./etcd/etcd-store.ts')).openEtcdStore({ rest, ...options }),
    place: async (rest) => (await import('./etcd/etcd-url.ts')).parseEtcdUrl(rest).name,
  },
};

export async function openStore(url: string, options: OpenOptions = {}): Promise<Store> {
  const { backend, rest } = backendOf(url);
  return backend.open(rest, options);
}

/** The name of the store of a URL, without a password. Throws like `openStore` for an invalid URL. */
export async function placeOf(url: string): Promise<string> {
  const { backend, rest } = backendOf(url);
  return backend.place(rest);
}

function backendOf(url: string): { readonly backend: Backend; readonly rest: string } {
  const colon = url.indexOf(':');
  const scheme = url.slice(0, Math.max(colon, 0));
  const backend = Object.hasOwn(backends, scheme) ? backends[scheme] : undefined;
  const forms = new Set(Object.values(backends).map(({ form }) => form));
  if (!backend && isPath(url))
    throw new StoreError('Invalid', `a store URL begins with a scheme; did you mean sqlite:${url}?`);
  // Only the scheme of a URL is repeated: the rest may contain a password.
  if (!backend) {
    const fault = colon < 0 ? 'a store URL begins with a scheme' : `no store has the scheme "${scheme}"`;
    throw new StoreError('Invalid', `${fault}; write one of: ${[...forms].join(', ')}`);
  }
  const rest = url.slice(colon + 1);
  if (backend.form.endsWith(':') !== (rest === ''))
    throw new StoreError('Invalid', `a store URL with scheme "${scheme}" is written ${backend.form}`);
  return { backend, rest };
}

/** Whether it is a path and may be repeated: it contains nothing like a host with a password, or parameters. */
function isPath(url: string): boolean {
  return /^\.{0,2}\/(?!\/)[^@?]*$|^[^:@?/]+\.(db|sqlite3?)$/.test(url);
}
