import { expect, it } from 'vitest';
import { findRoute, type Route } from './route.ts';

const routes: readonly Route[] = [
  { method: 'GET', path: '/v1/hosts/:name', access: 'open', handle: () => ({ status: 200, json: {} }) },
];

it('finds a route with what its path names', () => {
  expect(findRoute(routes, 'GET', '/v1/hosts/h%201').params).toEqual({ name: 'h 1' });
});

it.each([
  ['/v1/hosts/%E0%A4%A', 'GET', 'InvalidRequest'],
  ['/v1/hosts/h1', 'PUT', 'MethodNotAllowed'],
  ['/v1/rogues/h1', 'GET', 'NotFound'],
])('refuses %s by %s with %s', (path, method, code) => {
  expect(() => findRoute(routes, method, path)).toThrow(expect.objectContaining({ code }));
});
