// What clients of the Placement API write, for tests of stores: providers with their parts, names of their own, and claims that hold room of
// a host and of an outside provider together.

import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';

interface Server {
  readonly url: string;
  readonly token: string;
}

export interface OutsideRecords {
  /** What the API says about all of it. */
  read(server: Server): Promise<unknown[]>;
  /** Releases the claim, and deletes a provider. */
  remove(server: Server): Promise<void>;
}

/** The server has a host `h1`. */
export async function writeOutsideRecords(server: Server): Promise<OutsideRecords> {
  const [root, child, consumer, aggregate] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
  const { resource_providers: hosts } = await ask<{ resource_providers: { uuid: string }[] }>(
    server,
    'GET /resource_providers?name=h1',
  );
  const host = hosts[0]?.uuid ?? expect.unreachable('the host is a provider');
  await ask(server, 'PUT /resource_classes/CUSTOM_LICENSE');
  await ask(server, 'PUT /traits/CUSTOM_SPINNING');
  await ask(server, 'POST /resource_providers', { name: 'storage', uuid: root });
  await ask(server, 'POST /resource_providers', { name: 'shelf', uuid: child, parent_provider_uuid: root });
  const at = (part: string) => `/resource_providers/${child}${part}`;
  const inventories = { DISK_GB: { total: 500, reserved: 20 }, CUSTOM_LICENSE: { total: 2 } };
  await ask(server, `PUT ${at('/inventories')}`, { inventories, resource_provider_generation: 0 });
  await ask(server, `PUT ${at('/traits')}`, { traits: ['CUSTOM_SPINNING'], resource_provider_generation: 1 });
  await ask(server, `PUT ${at('/aggregates')}`, { aggregates: [aggregate], resource_provider_generation: 2 });
  await ask(server, `PUT /allocations/${consumer}`, {
    allocations: { [child]: { resources: { DISK_GB: 100 } }, [host]: { resources: { MEMORY_MB: 1 } } },
    ...{ project_id: 'p', user_id: 'u', consumer_generation: null, consumer_type: 'BUILD' },
  });
  const paths = [
    ...['', '/inventories', '/traits', '/aggregates', '/usages', '/allocations'].map(at),
    ...[`/resource_providers/${root}`, `/allocations/${consumer}`, '/usages?project_id=p', '/resource_classes'],
    '/traits?name=startswith:CUSTOM_SPINNING',
  ];
  return {
    read: async (from) => {
      const all: unknown[] = [];
      for (const path of paths) all.push(await ask(from, `GET ${path}`));
      return all;
    },
    remove: async (of) => {
      await ask(of, `DELETE /allocations/${consumer}`);
      await ask(of, `DELETE ${at('')}`);
    },
  };
}

async function ask<T>({ url, token }: Server, call: string, body?: object): Promise<T> {
  const [method = '', path = ''] = call.split(' ');
  const answer = await fetch(`${url}/placement${path}`, {
    method,
    headers: {
      'x-auth-token': token,
      'openstack-api-version': 'placement 1.39',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  expect(answer.ok, `${call} answered ${answer.status}: ${text}`).toBe(true);
  return (text === '' ? null : JSON.parse(text)) as T; // as the API documents it
}
