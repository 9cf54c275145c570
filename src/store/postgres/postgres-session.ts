// One connection to the server, opened when it is needed and again after it broke. One query at a time, each with a
// time limit. It never uses a server that might lose acknowledged commits, or that is only a replica.

import { Socket } from 'node:net';
import { Client, type QueryArrayConfig } from 'pg';
import type { Clock } from '../../base/clock.ts';
import { StoreError } from '../store.ts';
import { copyOut } from './copy-out.ts';
import { breaksConnection } from './postgres-errors.ts';
import type { PostgresTarget } from './postgres-url.ts';

export interface SessionOptions {
  readonly target: PostgresTarget;
  readonly clock: Clock;
  /** Time limit for connecting. */
  readonly connectMsMax: number;
  /** Time limit for a response; a server that is silent for longer counts as unavailable. */
  readonly answerMsMax: number;
  /** Prepares a new connection. */
  readonly prepare?: (query: Query) => Promise<void>;
  /** A notification from another session; this session knows its own commits. */
  readonly onNotification?: (payload: string) => void;
}

export type Query = (query: QueryArrayConfig<unknown[]> | string) => Promise<readonly unknown[][]>;

/** For the server to receive the termination message. */
const farewellMsMax = 1_000;

const serverVersionMin = 130_000;

export class PostgresSession {
  readonly #options: SessionOptions;
  #connection: Promise<Connection> | null = null;
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;
  /** Queries without a response yet. */
  pending = 0;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Rejects with the client's error: `toStoreError` interprets it. */
  async query(query: QueryArrayConfig<unknown[]> | string): Promise<readonly unknown[][]> {
    return this.#inTurn((client) => ask(client, query));
  }

  /** The same for large results: see copy-out.ts. */
  async copy(statement: string): Promise<Buffer> {
    return this.#inTurn((client) => copyOut(client, statement));
  }

  /** Resolves when there is a connection. */
  async connected(): Promise<void> {
    await this.#connected();
  }

  /** Resolves when all requests have their answers and the connection is closed; it is not opened again. */
  async close(): Promise<void> {
    await this.#last;
    this.#closed = true;
    const connection = await this.#connection?.catch(() => undefined);
    this.#connection = null;
    if (!connection) return;
    const timer = this.#options.clock.setTimer(farewellMsMax, () => connection.socket.destroy(), { background: true });
    await connection.client.end();
    timer.cancel();
  }

  async #inTurn<T>(askFor: (client: Client) => Promise<T>): Promise<T> {
    this.pending++;
    const turn = this.#last.then(() => this.#run(askFor));
    this.#last = turn.catch(() => undefined); // reported to the caller
    return turn.finally(() => this.pending--);
  }

  async #run<T>(askFor: (client: Client) => Promise<T>): Promise<T> {
    const connecting = this.#connected();
    const { client } = await connecting;
    try {
      return await askFor(client);
    } catch (error) {
      if (breaksConnection(error)) await this.#drop(connecting);
      throw error;
    }
  }

  #connected(): Promise<Connection> {
    if (this.#connection) return this.#connection;
    if (this.#closed) return Promise.reject(new StoreError('Closed', 'the request ended: the store was closed'));
    const connecting: Promise<Connection> = this.#connect(() => void this.#drop(connecting));
    this.#connection = connecting;
    connecting.catch(() => this.#drop(connecting));
    return connecting;
  }

  async #drop(connecting: Promise<Connection>): Promise<void> {
    if (this.#connection === connecting) this.#connection = null;
    const connection = await connecting.catch(() => undefined);
    connection?.socket.destroy();
  }

  async #connect(onBroken: () => void): Promise<Connection> {
    const { target, connectMsMax, answerMsMax, prepare, onNotification } = this.#options;
    const ssl = target.tls();
    const socket = new Socket();
    const client = new Client({
      application_name: 'berth',
      ...(ssl === undefined ? {} : { ssl }),
      connectionString: target.connectionString,
      connectionTimeoutMillis: connectMsMax,
      query_timeout: answerMsMax,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      stream: () => socket,
    });
    let ready = false;
    client.on('error', () => ready && onBroken()); // pending callers get the error as well
    client.on('end', () => ready && onBroken());
    let pid: number | undefined;
    client.on('notification', ({ payload = '', processId }) => processId === pid || onNotification?.(payload));
    try {
      await client.connect();
      pid = await settle(client, this.#options);
      await prepare?.((query) => ask(client, query));
    } catch (error) {
      socket.destroy();
      throw error;
    }
    ready = true;
    return { client, socket };
  }
}

interface Connection {
  readonly client: Client;
  readonly socket: Socket;
}

async function ask(client: Client, query: QueryArrayConfig<unknown[]> | string): Promise<readonly unknown[][]> {
  const result = await client.query<unknown[]>(typeof query === 'string' ? { text: query, rowMode: 'array' } : query);
  return result.rows;
}

/** Settings of the session, and reasons to refuse the server. Returns the id of the server process. */
async function settle(client: Client, { target, answerMsMax }: SessionOptions): Promise<number> {
  const [row = []] = await ask(client, settings(Math.floor(0.8 * answerMsMax)));
  const [version, standby, readOnly, fsync, fullPageWrites, pid] = row;
  const refused = (code: 'Invalid' | 'Unavailable', why: string): StoreError =>
    new StoreError(code, `the PostgreSQL server ${target.where} was refused: ${why}`);
  if (Number(version) < serverVersionMin)
    throw refused('Invalid', `its version is ${String(version)}; use PostgreSQL 13 or newer`);
  if (standby === true)
    throw refused('Unavailable', 'it is a standby, which may be behind its primary; name the primary in the URL');
  if (readOnly === 'on')
    throw refused('Unavailable', 'it lets nothing be written; set default_transaction_read_only to off');
  if (fsync !== 'on' || fullPageWrites !== 'on')
    throw refused('Invalid', 'it runs with fsync or full_page_writes off and can lose everything; turn both on');
  return Number(pid);
}

/**
 * One round trip. The server cancels a slow statement a little before this client gives up, which gives a better error.
 * `synchronous_commit` may only be stronger than `on`. The commit function relies on READ COMMITTED. All statements use
 * an index, and plans are made once for tables that will grow, so the savings of scanning an empty table do not count.
 */
function settings(statementMsMax: number): string {
  return `SELECT current_setting('server_version_num'), pg_is_in_recovery(), current_setting('transaction_read_only'),
    current_setting('fsync'), current_setting('full_page_writes'), pg_backend_pid(),
    set_config('synchronous_commit',
      CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('statement_timeout', '${statementMsMax}', false), set_config('lock_timeout', '0', false),
    set_config('bytea_output', 'hex', false), set_config('plan_cache_mode', 'force_generic_plan', false),
    set_config('jit', 'off', false), set_config('max_parallel_workers_per_gather', '0', false),
    set_config('enable_seqscan', 'off', false), set_config('enable_bitmapscan', 'off', false),
    set_config('enable_hashjoin', 'off', false), set_config('enable_mergejoin', 'off', false)`;
}
