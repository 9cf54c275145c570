// A list followed by its changes, without end. After a lost connection it lists again.

import { sleep } from '../../base/clock.ts';
import { ApiError } from '../../api/errors.ts';
import type { Kind, ResourceByKind } from '../../api/resources/index.ts';
import type { ListQuery, UserClient } from '../../api/client/user-client.ts';
import type { Cli } from '../cli.ts';
import { Interrupted } from '../exit-codes.ts';

export type Followed<T> =
  | { readonly type: 'sync'; readonly items: readonly T[] }
  | { readonly type: 'put'; readonly resource: T }
  | { readonly type: 'delete'; readonly name: string; readonly project: string }
  /** The connection was lost; it is retried. */
  | { readonly type: 'lost'; readonly reason: string };

const retryMs = 1_000;

/** All pages. The revision is that of the first page: a watch from there misses nothing. */
export async function listAll<K extends Kind>(
  client: UserClient,
  kind: K,
  query: ListQuery = {},
): Promise<{ items: ResourceByKind[K][]; from: { revision: number; epoch?: string } }> {
  let page = await client.list(kind, query);
  const { revision, epoch } = page;
  const items = [...page.items];
  while (page.continue !== undefined) {
    page = await client.list(kind, { ...query, continue: page.continue });
    items.push(...page.items);
  }
  return { items, from: { revision, ...(epoch === undefined ? {} : { epoch }) } };
}

/** Throws what the first list throws, and `Interrupted` when `signal` aborts. */
export async function* follow<K extends Kind>(
  cli: Pick<Cli, 'clock'>,
  client: UserClient,
  kind: K,
  query: ListQuery,
  signal: AbortSignal,
): AsyncIterable<Followed<ResourceByKind[K]>> {
  for (let first = true; ; first = false) {
    let reason = 'the server ended the watch';
    try {
      const { items, from } = await listAll(client, kind, query);
      yield { type: 'sync', items };
      for await (const change of client.watch(kind, { ...query, ...from }, signal)) {
        if (change.type === 'put') yield { type: 'put', resource: change.resource };
        else if (change.type === 'delete') yield { type: 'delete', ...change.resource.metadata };
      }
    } catch (error) {
      if (signal.aborted) throw new Interrupted();
      if (first && error instanceof ApiError && error.code === 'Unavailable') throw error;
      if (error instanceof ApiError && error.code === 'Compacted') continue;
      if (error instanceof ApiError && error.code !== 'Unavailable') throw error;
      reason = error instanceof Error ? error.message : String(error); // a broken stream: fetch throws a bare TypeError
    }
    if (signal.aborted) throw new Interrupted();
    yield { type: 'lost', reason };
    await sleep(cli.clock, retryMs, signal);
  }
}
