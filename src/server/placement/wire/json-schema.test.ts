// Which of several faults a refusal names.

import { expect, it } from 'vitest';
import { newInventory } from './schemas.ts';
import { schemaFault } from './json-schema.ts';

it.each([
  ['the first of its kind', { resource_class: 'VCPU', total: 0, reserved: -1 }, '0 is less than the minimum of 1'],
  [
    'a wrong type before a wrong value',
    { resource_class: 'VCPU', total: 0, max_unit: 'x' },
    "'x' is not of type 'integer'",
  ],
  ['the outermost before a wrong type', { resource_class: 'VCPU', max_unit: 'x' }, "'total' is a required property"],
])('%s', (_, inventory, said) => {
  expect(schemaFault(inventory, newInventory)).toMatch(new RegExp(`^${said}`));
});
