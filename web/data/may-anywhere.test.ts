import { expect, it } from 'vitest';
import type { WhoAmI } from '../../src/api/routes/access.ts';
import { mayAnywhere } from './may-anywhere.ts';

const withRoles = (...roles: string[]): WhoAmI => ({ kind: 'token', roles: roles.map((role) => ({ role })) });

const admin: WhoAmI = { kind: 'admin', roles: [] };

it.each([
  [withRoles('viewer'), 'instance', true],
  [withRoles('viewer'), 'host', false],
  [withRoles('viewer'), 'token', false],
  [withRoles('fleet-operator'), 'host', true],
  [withRoles('fleet-operator'), 'instance', true],
  [withRoles('metrics'), 'instance', false],
  [withRoles('custom'), 'secret', true],
  [withRoles(), 'image', false],
  [admin, 'webhook', true],
] as const)('%j may see resources of kind %s: %s', (who, kind, expected) => {
  expect(mayAnywhere(who, kind, 'read', 'read-placement')).toBe(expected);
});
