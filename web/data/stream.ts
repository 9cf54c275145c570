// ChangeStream: one watch for all kinds that the pages of a tab follow, because browsers limit the connections to a server. A broken connection
// is reopened from the last revision: followers are notified, and miss no change.

import { ApiError } from '../../src/api/errors.ts';
import type { KindsChange } from '../../src/api/client/user-client.ts';
import type { Kind } from '../../src/api/resources/index.ts';
import { client } from './client.ts';
import { waitForAnotherTry } from './another-try.ts';

export interface From {
  readonly revision: number;
  readonly epoch?: string | undefined;
}

export interface Following {
  readonly kind: Kind;
  take(change: KindsChange): void;
  /** The connection is open again, or has broken. */
  connected(why: string | undefined): void;
}

interface Follower extends Following {
  revision: number;
  readonly epoch: string | undefined;
  readonly fail: (error: unknown) => void;
}

interface Connection {
  readonly kinds: ReadonlySet<Kind>;
  readonly over: AbortController;
  revision: number;
}

/** Pages that replace each other often follow the same kinds: the connection stays open for this long. */
const lingerMs = 1_000;
/** The server sends a line at least every ten seconds. */
const silenceMsMax = 25_000;

export class ChangeStream {
  readonly #followers = new Set<Follower>();
  #connection: Connection | undefined;
  #retry: AbortController | undefined;

  /** Never resolves. Rejects with `Compacted`, or with why the kind may not be watched; and when `signal` aborts. */
  async follow(following: Following, { revision, epoch }: From, signal: AbortSignal): Promise<never> {
    const { promise, reject } = Promise.withResolvers<never>();
    const follower: Follower = {
      kind: following.kind,
      take: (change) => following.take(change),
      connected: (why) => following.connected(why),
      revision,
      epoch,
      fail: reject,
    };
    signal.addEventListener('abort', () => reject(new Error('stopped')));
    this.#followers.add(follower);
    const connection = this.#connection;
    if (connection === undefined || !connection.kinds.has(follower.kind) || connection.revision > revision)
      this.#connect();
    try {
      return await promise;
    } finally {
      this.#followers.delete(follower);
      setTimeout(() => {
        if (this.#followers.size === 0) this.#disconnect();
      }, lingerMs);
    }
  }

  /** Ends the wait. */
  retry(): void {
    this.#retry?.abort();
  }

  #disconnect(): void {
    this.#connection?.over.abort();
    this.#connection = undefined;
  }

  #connect(): void {
    this.#disconnect();
    const over = new AbortController();
    const kinds = new Set([...this.#followers].map(({ kind }) => kind));
    const connection = { kinds, over, revision: Math.min(...[...this.#followers].map((each) => each.revision)) };
    this.#connection = connection;
    void this.#run(connection);
  }

  async #run(connection: Connection): Promise<void> {
    const { signal } = connection.over;
    let tries = 0;
    while (!signal.aborted) {
      try {
        await this.#read(connection, () => (tries = 0));
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ApiError && ['Compacted', 'Forbidden', 'Unauthenticated'].includes(error.code)) {
          this.#disconnect();
          for (const follower of this.#followers) follower.fail(error);
          return;
        }
        const why = error instanceof Error ? error.message : String(error);
        for (const follower of this.#followers) follower.connected(why);
        this.#retry = new AbortController();
        await waitForAnotherTry(tries++, AbortSignal.any([signal, this.#retry.signal]));
      }
    }
  }

  async #read(connection: Connection, onFirst: () => void): Promise<void> {
    const silent = new AbortController();
    let timer = setTimeout(() => silent.abort(), silenceMsMax);
    const signal = AbortSignal.any([connection.over.signal, silent.signal]);
    const epoch = [...this.#followers].find((follower) => follower.epoch !== undefined)?.epoch;
    const asked = { kinds: [...connection.kinds], revision: connection.revision, ...(epoch ? { epoch } : {}) };
    let first = true;
    try {
      for await (const change of client.watchKinds(asked, signal)) {
        clearTimeout(timer);
        timer = setTimeout(() => silent.abort(), silenceMsMax);
        if (first) {
          first = false;
          onFirst();
          for (const follower of this.#followers) follower.connected(undefined);
        }
        if (change.type === 'bookmark') connection.revision = change.revision;
        this.#handOut(change);
      }
    } catch (error) {
      throw silent.signal.aborted ? new Error('nothing was heard of the server') : error;
    } finally {
      clearTimeout(timer);
    }
    throw new Error('the server ended the stream');
  }

  #handOut(change: KindsChange): void {
    for (const follower of this.#followers) {
      if (change.type === 'refused') {
        if (follower.kind === change.kind) follower.fail(new ApiError('Forbidden', change.message));
      } else if (change.type === 'bookmark') {
        if (change.revision <= follower.revision) continue;
        follower.revision = change.revision;
        follower.take(change);
      } else if (follower.kind === change.resource.kind && change.revision > follower.revision) follower.take(change);
    }
  }
}

export const changeStream = new ChangeStream();
