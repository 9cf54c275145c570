import { afterAll, beforeAll, expect, it } from 'vitest';
import { routes } from '../../api/routes/registry.ts';
import type { RouteDefinition } from '../../api/routes/route.ts';
import type { ImageContent } from '../images/image-content.ts';
import { startTestServer } from '../testing.ts';
import { type GuestAccess, guestAccess } from './guest-access.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
let access: GuestAccess;
beforeAll(async () => {
  server = await startTestServer({ imageContent: {} as ImageContent }); // no route of it is called
  access = guestAccess({ decider: server.plane.decider, links: {} as never, secret: Buffer.alloc(32) });
});
afterAll(() => server.close());

const told = (all: readonly Pick<RouteDefinition, 'method' | 'path' | 'access'>[]): string[] =>
  all.map(({ method, path, access }) => `${method} ${path} for ${JSON.stringify(access)}`).sort();

it('serves every route of the registry, and none besides', () => {
  expect(told([...server.plane.routes, ...access.routes])).toEqual(told(routes.filter(({ upgrade }) => !upgrade)));
});

it('knows every way into a guest that is in the registry', () => {
  const ways = routes.filter(({ upgrade, tag }) => upgrade && tag === 'instances');
  const unknown = ways.map(({ path }) => path.replace(':name', 'web-1').replace(':port', '80'));
  expect(ways).toHaveLength(4);
  expect(unknown.filter((path) => !access.knows(path))).toEqual([]);
});
