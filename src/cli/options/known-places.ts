// Checks that hosts and pools named by the user exist, because no one else would report a typing error. Changes
// nothing.

import { errorCodes } from '../../api/errors.ts';
import { nearest } from '../../api/nearest.ts';
import type { UserClient } from '../../api/client/user-client.ts';
import { attempting, CommandError } from '../exit-codes.ts';
import { listAll } from '../print/follow.ts';

export async function assertHost(client: UserClient, host: string): Promise<void> {
  const { items } = await attempting('list hosts', () => listAll(client, 'host'));
  const known = items.map(({ metadata }) => metadata.name);
  if (known.includes(host)) return;
  throw unknownPlace(`there is no host "${host}"`, nearest(host, known), `create it first: berth host create ${host}`);
}

/** Like `berth run --pool`: a pool exists as a record, or by a host in it. */
export async function assertPool(client: UserClient, pool: string): Promise<void> {
  const [pools, hosts] = await attempting('list pools', () =>
    Promise.all([listAll(client, 'pool'), listAll(client, 'host')]),
  );
  const known = new Set(pools.items.map(({ metadata }) => metadata.name));
  for (const { spec } of hosts.items) if (spec.pool !== undefined) known.add(spec.pool);
  if (known.has(pool)) return;
  const message = `there is no pool "${pool}", and no host is in it`;
  throw unknownPlace(message, nearest(pool, [...known]), `create it first: berth pool create ${pool}`);
}

function unknownPlace(message: string, meant: string | undefined, otherwise: string): CommandError {
  return new CommandError(errorCodes.InvalidRequest.exitCode, message, {
    advice: meant === undefined ? otherwise : `did you mean "${meant}"?`,
  });
}
